package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// period is a time range that ends now, as the parameter last has it.
type period struct{ Name, Text string }

// periods are those that the form offers.
var periods = []period{
	{"15m", "15 minutes"},
	{"1h", "hour"},
	{"24h", "24 hours"},
	{"7d", "7 days"},
	{"30d", "30 days"},
	{"all", "any time"},
}

// spansWith are the periods with another one, if that is none of them.
func spansWith(name string) []period {
	if name == "" || slices.ContainsFunc(periods, func(p period) bool { return p.Name == name }) {
		return periods
	}
	return append(slices.Clip(periods), period{name, name})
}

// units are those of the parameter last.
var units = map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}

// maxSpan bounds a time range that ends now.
const maxSpan = 100 * 365 * 24 * time.Hour

// span is a time range that ends now, such as 90m, 1h or 7d; 0 for all, and below 0 for what is none.
func span(text string) time.Duration {
	if text == "all" {
		return 0
	}
	if len(text) < 2 {
		return -1
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 31)
	unit := units[text[len(text)-1]]
	if err != nil || n == 0 || unit == 0 || n > uint64(maxSpan/unit) {
		return -1
	}
	return time.Duration(n) * unit
}

// waits are what jobs can wait for, as the parameter waits has it.
var waits = []struct{ Name, Text string }{
	{store.WaitsTopic, "a worker"},
	{store.WaitsSignal, "a signal"},
	{store.WaitsTimer, "a timer"},
	{store.WaitsChild, "a child"},
	{store.WaitsPerson, "a person"},
}

// usual is the time range of a filter without an index.
const usual = "24h"

// filter is the filter of a list of jobs, as the address has it.
type filter struct {
	Flow, Version, Prefix, Tags, Parent string
	Waits, Named                        string // what the job waits for, and its topic
	States                              map[journal.JobState]bool
	Last, From, To                      string
	// Assumed says that the time range is the usual one, because a filter has no index and the
	// address names none.
	Assumed bool

	jobs quipu.JobFilter
}

// atFormat is how an address and the form have a moment, in UTC.
const atFormat = "2006-01-02T15:04"

// filterOf reads the filter of an address.
func (c *console) filterOf(ctx context.Context, r *http.Request, q url.Values) (*filter, error) {
	f := &filter{
		Flow: q.Get("flow"), Version: q.Get("version"), Prefix: q.Get("prefix"), Tags: q.Get("tag"), Parent: q.Get("parent"),
		Waits: q.Get("waits"), States: map[journal.JobState]bool{}, Last: q.Get("last"), From: q.Get("from"), To: q.Get("to"),
	}
	if named, name, is := strings.Cut(f.Waits, ":"); is {
		f.Waits, f.Named = named, name
	} else if f.Waits == store.WaitsTopic || f.Waits == store.WaitsSignal {
		f.Named = q.Get("topic")
	}
	f.jobs = quipu.JobFilter{Flow: f.Flow, Version: f.Version, Prefix: f.Prefix, Waits: f.waits()}
	for _, name := range q["state"] {
		state := journal.JobState(name)
		if !slices.Contains(journal.JobStates, state) {
			return nil, badState(name)
		}
		if !f.States[state] {
			f.States[state], f.jobs.States = true, append(f.jobs.States, state)
		}
	}
	for tag := range strings.SplitSeq(f.Tags, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.jobs.Tags = append(f.jobs.Tags, tag)
		}
	}
	f.Tags = strings.Join(f.jobs.Tags, ",")
	if f.Parent != "" {
		parent, err := c.reader.Find(ctx, f.Parent)
		if err != nil {
			return nil, err
		}
		f.jobs.Parent = parent
	}
	return f, f.times(time.Now())
}

// waits is what the jobs wait for, as a JobFilter has it.
func (f *filter) waits() string {
	if f.Named == "" {
		return f.Waits
	}
	return f.Waits + ":" + f.Named
}

// indexed reports a filter that only reads jobs that fit, or few: by tags, a parent, what they wait
// for, or states in which few jobs are.
func (f *filter) indexed() bool {
	few := len(f.jobs.States) > 0
	for _, state := range f.jobs.States {
		few = few && state != journal.JobCompleted && state != journal.JobExpired
	}
	return few || f.Waits != "" || len(f.jobs.Tags) > 0 || !f.jobs.Parent.IsZero()
}

// times reads the time range. A filter without an index gets the usual range.
func (f *filter) times(now time.Time) (err error) {
	if f.jobs.From, err = moment("from", f.From); err != nil {
		return err
	}
	if f.jobs.To, err = moment("to", f.To); err != nil {
		return err
	}
	if f.From != "" || f.To != "" {
		f.Last = ""
		return nil
	}
	narrow := len(f.jobs.States) > 0 || f.Flow != "" || f.Version != "" || f.Prefix != ""
	if f.Last == "" && narrow && !f.indexed() {
		f.Last, f.Assumed = usual, true
	}
	if f.Last == "" {
		return nil
	}
	last := span(f.Last)
	if last < 0 {
		return badSince(f.Last)
	}
	if last > 0 {
		f.jobs.From = now.Add(-last).Truncate(time.Second)
	}
	return nil
}

func moment(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(atFormat, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		return t, bad("%s %.40q: use a moment in UTC, such as 2026-01-31T18:00", name, text)
	}
	return t, nil
}

// query is the filter as an address has it, without the place in the list.
func (f *filter) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"flow": f.Flow, "version": f.Version, "prefix": f.Prefix, "waits": f.waits(), "tag": f.Tags, "parent": f.Parent, "last": f.Last, "from": f.From, "to": f.To,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for _, state := range journal.JobStates {
		if f.States[state] {
			q.Add("state", string(state))
		}
	}
	return q
}
