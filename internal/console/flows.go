package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// flowVersion is one deployed version.
type flowVersion struct {
	Name, Version, Digest string
	Active                bool
	Deployed              time.Time
}

// flowVersions lists the deployed versions, by name and then newest first; name "" is all.
func (c *console) flowVersions(ctx context.Context, name string) ([]flowVersion, error) {
	flows, err := below.Of(c.rt).Flows(ctx)
	if err != nil {
		return nil, err
	}
	var all []flowVersion
	for _, f := range flows {
		if name == "" || name == f.Ref.Name {
			all = append(all,
				flowVersion{f.Ref.Name, f.Ref.Version, f.Ref.Digest.String(), f.Active, instant(f.Deployed)})
		}
	}
	slices.SortFunc(all, func(a, b flowVersion) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), b.Deployed.Compare(a.Deployed), cmp.Compare(b.Version, a.Version))
	})
	return all, nil
}

// flows lists the deployed flows.
func (c *console) flows(ctx context.Context, _ *http.Request) (*page, error) {
	all, err := c.flowVersions(ctx, "")
	if err != nil {
		return nil, err
	}
	return &page{Template: "flows", Title: "Flows", Section: "flows", Data: all}, nil
}

// flowPage is one flow: its graph, its versions, and what differs between two of them.
type flowPage struct {
	Name        string
	Versions    []flowVersion
	Shown, With string
	Graph       *graph
	Unread      bool // this build cannot read the version
	Definition  []byte
	Differences []difference
	Compared    bool
	Warnings    []string
	Again       *again // nil: the form begins with a sketch
}

// Active reports that the shown version is the one for new jobs.
func (p *flowPage) Active() bool {
	return slices.ContainsFunc(p.Versions, func(v flowVersion) bool { return v.Active && v.Version == p.Shown })
}

// Sketch is an input to begin with.
func (p *flowPage) Sketch() string {
	if p.Again != nil && p.Again.Input != "" {
		return p.Again.Input
	}
	return sketch(p.Definition)
}

// difference is a place where two versions differ, as JSON; "" stands for a side without it.
type difference struct{ Path, Before, After string }

// flow shows one flow, in its active version or another.
func (c *console) flow(ctx context.Context, r *http.Request) (*page, error) {
	p := &flowPage{Name: r.PathValue("name"), Shown: r.URL.Query().Get("version"), With: r.URL.Query().Get("with")}
	var err error
	if p.Versions, err = c.flowVersions(ctx, p.Name); err != nil {
		return nil, err
	}
	if len(p.Versions) == 0 {
		return nil, errors.Join(bad("no version of flow %.64s is deployed", p.Name), quipu.ErrNotFound)
	}
	if p.Shown == "" {
		p.Shown = p.Versions[0].Version
		for _, v := range p.Versions {
			if v.Active {
				p.Shown = v.Version
			}
		}
	}
	if p.Definition, err = below.Of(c.rt).Flow(ctx, p.Name, p.Shown); err != nil {
		return nil, err
	}
	f, err := flow.FromCanonical(p.Definition)
	if err != nil {
		p.Unread = true
	} else {
		p.Graph = graphOf(f, explain.Survey(&explain.Job{View: new(store.JobView), Flow: f}))
		for _, w := range f.Warnings() {
			p.Warnings = append(p.Warnings, w.Error())
		}
	}
	if p.With != "" {
		if err := c.compare(ctx, p); err != nil {
			return nil, err
		}
	}
	if text := r.URL.Query().Get("again"); text != "" {
		if p.Again, err = c.again(ctx, p.Name, text); err != nil {
			return nil, err
		}
		if f != nil && f.Identity() == flow.Strict {
			p.Again.Key = "" // it follows from the input
		}
	}
	return &page{Template: "flow", Title: "Flow " + p.Name, Section: "flows", Still: true, Data: p}, nil
}

// again is a form that starts a job like another one.
type again struct {
	Job        *view.Job
	Key, Input string // "": somebody has to write it
	Missing    string // why there is no input
}

// maxAgain bounds the input that a form begins with, bytes.
const maxAgain = 50_000

// again fills the form with the input of a job of the flow, and a key that no job has.
func (c *console) again(ctx context.Context, name, text string) (*again, error) {
	id, err := journal.ParseJobID(text)
	if err != nil {
		return nil, bad("again: %v", err)
	}
	job, err := c.reader.Job(ctx, id, inspect.Want{
		Want: view.Want{Events: true}, Lenient: true, Hidden: !access.Of(ctx).Payloads,
	})
	if err != nil {
		return nil, err
	}
	if job.Flow != name {
		return nil, bad("job %.64s is one of flow %.64s", job.Key, job.Flow)
	}
	a := &again{Job: job, Key: c.reader.AgainKey(ctx, c.cfg.Space, job.Key)}
	switch in := job.Input; {
	case in == nil:
		a.Missing = cmp.Or(job.HistoryError, "the journal has none")
	case in.Missing != "":
		a.Missing = in.Missing
	case len(in.JSON) > maxAgain:
		a.Missing = fmt.Sprintf("its %s are too many for a form: use quipu start --input @FILE", size(in.JSON))
	default:
		a.Input = pretty(in.JSON)
	}
	return a, nil
}

// compare fills what version With has otherwise than the shown one.
func (c *console) compare(ctx context.Context, p *flowPage) error {
	other, err := below.Of(c.rt).Flow(ctx, p.Name, p.With)
	if err != nil {
		return err
	}
	found, err := inspect.Differences(p.Definition, other)
	if err != nil {
		return err
	}
	p.Compared = true
	side := func(v any) string {
		if v == nil {
			return ""
		}
		return string(inspect.Spell(v))
	}
	for _, d := range found {
		p.Differences = append(p.Differences, difference{d.Path, side(d.Before), side(d.After)})
	}
	return nil
}

// spacePage is what holds for the whole space (O9).
type spacePage struct {
	Name    string
	Another string // why nothing is decided in this database; "" if it is
	Epoch   int64
	Expire  time.Duration
	Signed  bool
	Private bool                  // keys of jobs and signals are kept as digests
	Log     []*journal.SpaceEntry // what was decided about the space itself, the oldest first
	Keys    []quipu.Key
	KeysHid string // why the keys are not shown
}

// space shows what holds for the whole space.
func (c *console) space(ctx context.Context, _ *http.Request) (*page, error) {
	p := &spacePage{Name: c.cfg.Space}
	var err error
	st := below.Of(c.rt)
	if p.Epoch, err = st.Epoch(ctx); err != nil {
		return nil, err
	}
	if err := st.Another(); err != nil {
		p.Another = err.Error()
	}
	if p.Expire, err = c.rt.ExpireDefault(ctx); err != nil {
		return nil, err
	}
	if p.Signed, err = c.rt.Keys().On(ctx); err != nil {
		return nil, err
	}
	if p.Private, err = c.rt.PrivateKeys(ctx); err != nil {
		return nil, err
	}
	if p.Log, err = st.SpaceEntries(ctx); err != nil {
		return nil, err
	}
	if p.Keys, err = c.rt.Keys().List(ctx); err != nil {
		p.KeysHid = err.Error()
	}
	return &page{Template: "space", Title: "Space", Section: "space", Data: p}, nil
}

// instant is a time of the database; Never is the zero time.
func instant(t collation.Micros) time.Time {
	if t == collation.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
}
