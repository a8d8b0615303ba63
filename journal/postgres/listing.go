package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// spot is a place in the list of jobs.
type spot struct {
	started collation.Micros
	id      journal.JobID
}

func (p spot) cursor() string { return strconv.FormatInt(int64(p.started), 10) + "." + p.id.String() }

// spotOf reads a cursor: store.ErrRejected.
func spotOf(cursor string) (p spot, err error) {
	at, id, _ := strings.Cut(cursor, ".")
	started, err := strconv.ParseInt(at, 10, 64)
	if err == nil {
		p.started = collation.Micros(started)
		p.id, err = journal.ParseJobID(id)
	}
	if err != nil {
		return p, fmt.Errorf("%w: cursor %.80q: take the one of a listed job", store.ErrRejected, cursor)
	}
	return p, nil
}

// listing is a filter as the statements take it.
type listing struct {
	store.JobFilter
	what, name string // what the jobs wait for
	from, to   spot   // the range: from this job, to before that
	standing   bool   // the states have an index
	compares   bool   // a page compares jobs one after another, and ends after it has looked at so many
}

// indexed are the states whose jobs have an index, and whether all of them are few.
var indexed = map[journal.JobState]bool{
	journal.JobOpen: true, journal.JobQuarantined: true, journal.JobFailed: false, journal.JobInterrupted: false,
}

// Jobs implements store.Lists. Filters that have no index are compared with the jobs of a range,
// whose end is looked up before.
func (s *Store) Jobs(ctx context.Context, f store.JobFilter) (page store.JobPage, err error) {
	if err := f.Check(); err != nil {
		return page, err
	}
	l, err := listingOf(&f)
	if err != nil || l == nil {
		return page, err
	}
	var edge *spot
	if l.compares {
		if edge, err = s.edge(ctx, l); err != nil {
			return page, err
		}
	}
	if edge != nil {
		l.from = *edge
	}
	err = s.selected(ctx, "job_list", l, func() { page.Jobs = nil }, func(v row) error {
		page.Jobs = append(page.Jobs, s.readSummary(v))
		return nil
	})
	switch {
	case err != nil:
		return store.JobPage{}, err
	case len(page.Jobs) == f.Limit:
		page.Next = page.Jobs[f.Limit-1].Cursor
	case edge != nil:
		page.Next, page.Searched = edge.cursor(), edge.started
	}
	return page, nil
}

// edge finds the last job that a page looks at, nil if there are not so many.
func (s *Store) edge(ctx context.Context, l *listing) (edge *spot, err error) {
	look := store.MaxLook
	if l.what != "" {
		look = store.MaxAsked
	}
	if l.Look > 0 {
		look = l.Look
	}
	name, params := "job_edge",
		[][]byte{pInt(int64(l.from.started)), pInt(int64(l.to.started)), pUUID(l.to.id), pInt(int64(look))}
	if l.standing {
		name, params = "job_edge_standing", append(params, l.states(), pText(l.Flow))
	}
	err = s.query(ctx, name, func() { edge = nil }, func(v row) error {
		edge = &spot{collation.Micros(v.int(0)), v.job(1)}
		return nil
	}, params...)
	return edge, err
}

// selected runs the form of a statement that has the index for a filter.
func (s *Store) selected(ctx context.Context, name string, l *listing, reset func(), visit func(row) error) error {
	params := l.params()
	steps := []step{{name, params, visit}}
	switch {
	case !l.Parent.IsZero():
		steps[0] = step{name + "_children", append(params, pTexts(l.Tags), pUUID(l.Parent)), visit}
	case len(l.Tags) > 0:
		steps = []step{{"bitmap", nil, nil}, {name + "_tagged", append(params, pTexts(l.Tags)), visit}}
	case l.standing && name == "job_list":
		steps[0].name = "job_list_standing"
	}
	return s.look(ctx, name, func(c *conn) error {
		if reset(); len(steps) == 1 {
			return c.query(ctx, steps[0].name, visit, steps[0].params...)
		}
		return c.snapshot(ctx, steps...)
	})
}

// listingOf reads a filter; nil if it fits no job: only open jobs wait.
func listingOf(f *store.JobFilter) (l *listing, err error) {
	l = &listing{JobFilter: *f, from: spot{started: f.From}, to: spot{started: math.MaxInt64}}
	if l.what, l.name, err = f.Waiting(); err == nil && f.Before != "" {
		l.to, err = spotOf(f.Before)
	}
	if err != nil {
		return nil, err
	}
	if f.To != 0 && f.To <= l.to.started {
		l.to = spot{started: f.To}
	}
	if l.what != "" {
		if len(f.States) > 0 && !slices.Contains(f.States, journal.JobOpen) {
			return nil, nil
		}
		l.States = []journal.JobState{journal.JobOpen}
	}
	more := f.Version != "" || f.Prefix != "" || l.what != "" // which the index of standing jobs does not have
	few := len(l.States) > 0
	l.standing = few
	for _, state := range l.States {
		all, known := indexed[state]
		l.standing, few = l.standing && known, few && all
	}
	narrow := more || len(l.States) > 0 || f.Flow != ""
	l.compares = narrow && (more || !few) && len(f.Tags) == 0 && f.Parent.IsZero()
	return l, nil
}

func (l *listing) states() []byte {
	states := make([]string, len(l.States))
	for i, state := range l.States {
		states[i] = string(state)
	}
	return pTexts(states)
}

// params are the parameters that all statements about a filter have.
func (l *listing) params() [][]byte {
	var waits []string
	if l.what != "" {
		waits = []string{l.what, l.name}
	}
	return [][]byte{
		l.states(), pText(l.Flow), pText(l.Version), pText(l.Prefix), pInt(int64(l.from.started)),
		pInt(int64(l.to.started)), pUUID(l.to.id),
		pInt(int64(l.Limit)), pTexts(waits), pUUID(l.from.id),
	}
}

// CountJobs counts by state the jobs that a filter selects.
func (s *Store) CountJobs(
	ctx context.Context, f store.JobFilter,
) (counts map[journal.JobState]int64, looked int64, err error) {
	f.Before, f.Limit = "", store.MaxCounted
	l, err := listingOf(&f)
	if err != nil || l == nil {
		return map[journal.JobState]int64{}, 0, err
	}
	reset := func() { counts, looked = map[journal.JobState]int64{}, 0 }
	err = s.selected(ctx, "job_counted", l, reset, func(v row) error {
		if n := v.int(1); n > 0 {
			counts[journal.JobState(v.text(0))] = n
		}
		looked += v.int(2)
		return nil
	})
	return counts, looked, err
}
