package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/console"
)

// elements of the long list whose job's page is measured: the most that `each` takes.
const elements = 10_000

// lookAgain is how often a page is asked for after its first time.
const lookAgain = 11

// pageAim is what a page is to take on the server, and weightAim what it is to weigh.
const (
	pageAim   = 100 * time.Millisecond
	weightAim = 200_000
)

// console measures pages of the console on many jobs, and that of a job of 10 000 elements.
func (b *bench) console(ctx context.Context) (err error) {
	space := b.space()
	defer func() { _ = b.drop(ctx, space) }()
	l := &loader{dsn: b.dsn, schema: schema(space), jobs: b.scaled(1_000_000)}
	made, err := b.originals(ctx, space)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := l.load(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.out, "console: %d jobs of %d days were loaded in %s; a page is asked for once, then %d times\n",
		l.jobs, days, time.Since(began).Round(time.Second), lookAgain)
	rt, err := quipu.Open(ctx, quipu.Config{Postgres: b.dsn, Space: space, Logger: warnings})
	if err != nil {
		return err
	}
	defer rt.Close()
	guard := access.New(access.Config{Local: &access.Who{Name: "bench", Role: access.Operator}})
	fresh := func() http.Handler {
		return guard.Wrap(console.New(rt, console.Config{Guard: guard, Space: space, Build: "bench", Logger: warnings}))
	}
	pages := fresh()
	before := heap()
	for _, p := range pagesOf(made) {
		if err := b.page(func() http.Handler { return pages }, p.name, p.path); err != nil {
			return err
		}
	}
	for _, p := range firstLooks(made) { // a console that has kept no journal yet
		if err := b.page(fresh, p.name, p.path); err != nil {
			return err
		}
	}
	b.print(line{"console: memory that two long journals take", heap() - before, "MiB", ""})
	runtime.KeepAlive(pages)
	return nil
}

// heap is what is in use, in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// page asks for a page several times, each time of the console that pages returns, and says what
// that took and weighs.
func (b *bench) page(pages func() http.Handler, name, path string) error {
	var first time.Duration
	var all laps
	var weight int
	var body []byte
	var cpu time.Duration
	for n := range lookAgain + 1 {
		if n == 1 {
			cpu = b.cpu()
		}
		h := pages()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("Accept-Encoding", "gzip")
		w := httptest.NewRecorder()
		began := time.Now()
		h.ServeHTTP(w, r)
		if took := time.Since(began); n == 0 {
			first = took
		} else {
			all = append(all, took)
		}
		weight, body = w.Body.Len(), w.Body.Bytes()
		if w.Code != http.StatusOK {
			return fmt.Errorf("%s: %s: %d", name, path, w.Code)
		}
	}
	cpu = (b.cpu() - cpu) / lookAgain
	slices.Sort(all)
	plain, err := unzipped(body)
	if err != nil {
		return err
	}
	missed := ""
	if all.quantile(0.5) > pageAim || weight > weightAim {
		missed = "; MISSED"
	}
	b.print(line{
		name, millis(all.quantile(0.5)), "ms",
		fmt.Sprintf("CPU %s ms; first %s ms; %s kB, %s kB plain; aim ≤ %s ms, ≤ %s kB%s", figure(millis(cpu)), figure(millis(first)), figure(float64(weight)/1000),
			figure(float64(plain)/1000), figure(millis(pageAim)), figure(weightAim/1000.0), missed),
	})
	return nil
}

// unzipped is the size of what was compressed.
func unzipped(body []byte) (int64, error) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	return io.Copy(io.Discard, z)
}

// namedPage is a page of the console.
type namedPage struct{ name, path string }

// pagesOf are the pages that are measured: the list, each filter where it fits many jobs and where
// it fits none, and a job of many elements.
func pagesOf(o *originals) []namedPage {
	return []namedPage{
		{"console: jobs, newest", "/jobs"},
		{"console: jobs, a page 3 days back", "/jobs?before=" + o.back},
		{"console: jobs, last=24h", "/jobs?last=24h"},
		{"console: jobs, tag", "/jobs?tag=rare"},
		{"console: jobs, parent", "/jobs?parent=" + o.parent},
		{"console: jobs, state=completed", "/jobs?state=completed"},
		{"console: jobs, state=open, 7 days", "/jobs?state=open&last=7d"},
		{"console: jobs, state=failed, 7 days", "/jobs?state=failed&last=7d"},
		{"console: jobs, state=quarantined (none), all", "/jobs?state=quarantined&last=all"},
		{"console: jobs, state=expired (none), 7 days", "/jobs?state=expired&last=7d"},
		{"console: jobs, waits=topic:nobody", "/jobs?waits=topic:nobody"},
		{"console: jobs, waits=signal:none (none)", "/jobs?waits=signal:none"},
		{"console: jobs, waits=child", "/jobs?waits=child"},
		{"console: jobs, waits=person", "/jobs?waits=person"},
		{"console: jobs, flow and version, 24 hours", "/jobs?flow=bad&version=1"},
		{"console: jobs, flow without jobs, 24 hours", "/jobs?flow=none"},
		{"console: jobs, flow without jobs, 7 days", "/jobs?flow=none&last=7d"},
		{"console: jobs, prefix (none), 24 hours", "/jobs?prefix=zz"},
		{"console: jobs, prefix (none), all", "/jobs?prefix=zz&last=all"},
		{"console: job of 10 000 elements", "/jobs/" + o.list + "?history=1"},
		{"console: job of 10 000 elements, one activity", "/jobs/" + o.list + "?activity=it"},
		{"console: job of 10 000 elements, search", "/jobs/" + o.list + "?q=nothing"},
		{"console: job of 10 000 elements, half way", "/jobs/" + o.list + "?at=5000"},
		{"console: job of 10 000 elements, under way", "/jobs/" + o.open + "?history=1"},
	}
}

// firstLooks are the pages of long jobs, which read a whole journal when they are looked at first.
func firstLooks(o *originals) []namedPage {
	return []namedPage{
		{"console: first look at a job of 10 000 elements", "/jobs/" + o.list},
		{"console: history of a job of 10 000 elements, not read before", "/jobs/" + o.list + "?history=1&part=1"},
		{"console: first look at one half way", "/jobs/" + o.list + "?at=5000"},
		{"console: first look at one under way", "/jobs/" + o.open},
		{"console: history of one under way, not read before", "/jobs/" + o.open + "?history=1&part=1"},
	}
}
