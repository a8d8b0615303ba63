package console

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/access"
	"github.com/quipu-journal/quipu/internal/look"
)

// Config is what New needs beside the runtime.
type Config struct {
	// Guard decides who may see and do what. Required; its Wrap has to stand before the console.
	Guard *access.Guard
	// Build is this build, as entries of the journal name builds.
	Build string
	// Space is the name of the space, for the title.
	Space string
	// Trace is the address of a trace in a tracing system, with {trace} in the place of its id;
	// empty: pages have no such link.
	Trace string
	// Logger gets errors that a page cannot show; nil: none.
	Logger *slog.Logger
}

//go:embed assets templates
var files embed.FS

// console serves the pages of one space.
type console struct {
	rt    *quipu.Runtime
	cfg   Config
	pages *pages
	mux   *http.ServeMux
	live  chan struct{} // a slot for each stream
	shelf look.Shelf
}

// maxStreams bounds the pages that follow the space at the same time. Each is made anew about once
// a second.
const maxStreams = 32

// New returns the console of the runtime's space (O6). Viewers see its pages, those who may see no
// payloads without them; clients also interrupt jobs, and operators decide on dead letters and act
// on many jobs (O11).
func New(rt *quipu.Runtime, cfg Config) http.Handler {
	if cfg.Space == "" {
		cfg.Space = quipu.DefaultSpace
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &console{rt: rt, cfg: cfg, mux: http.NewServeMux(), live: make(chan struct{}, maxStreams)}
	c.pages = newPages()
	c.routes()
	return zipped(c.mux)
}

func (c *console) routes() {
	assets, _ := fs.Sub(files, "assets") // the directory is embedded
	c.mux.Handle("GET /assets/", http.StripPrefix("/assets/", cached(http.FileServerFS(assets))))
	c.mux.Handle("GET /{$}", http.RedirectHandler("/jobs", http.StatusSeeOther))
	for pattern, show := range map[string]show{
		"GET /jobs": c.jobs, "GET /jobs/counts": c.counts, "GET /jobs/{id}": c.job,
		"GET /processes": c.processes, "GET /topics": c.topics, "GET /flows": c.flows, "GET /flows/{name}": c.flow,
		"GET /schedules": c.schedules, "GET /dead": c.dead, "GET /space": c.space, "GET /bulk": c.bulk,
	} {
		c.handle(pattern, access.Viewer, c.page(show))
	}
	c.handle("GET /job", access.Viewer, http.HandlerFunc(c.find))
	c.handle("GET /jobs/{id}/export", access.Viewer, seeing(c.export))
	c.handle("GET /jobs/{id}/value", access.Viewer, seeing(c.value))
	c.handle("GET /bulk/export", access.Viewer, seeing(c.exportMany))
	c.handle("GET /live", access.Viewer, http.HandlerFunc(c.follow))
	c.handle("POST /dead", access.Operator, http.HandlerFunc(c.decide))
	c.handle("POST /jobs/{id}/interrupt", access.Client, http.HandlerFunc(c.interrupt))
	c.handle("POST /bulk", access.Operator, http.HandlerFunc(c.runBulk))
}

// handle serves a pattern to those with a role.
func (c *console) handle(pattern string, role access.Role, h http.Handler) {
	c.mux.Handle(pattern, c.cfg.Guard.Need(role, h))
}

// seeing serves what has payloads to those who may see them.
func seeing(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !access.Of(r.Context()).Payloads {
			http.Error(w, "a journal has payloads, which are not shown to a viewer", http.StatusForbidden)
			return
		}
		h(w, r)
	})
}

// show reads what a page shows. Its error becomes a page of its own.
type show func(ctx context.Context, r *http.Request) (*view, error)

// readWait bounds the making of one page.
const readWait = 60 * time.Second

// page serves what show reads.
func (c *console) page(show show) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readWait)
		defer cancel()
		v, err := show(ctx, r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		c.render(w, r, http.StatusOK, v)
	})
}

// cached lets a browser keep assets for an hour.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		next.ServeHTTP(w, r)
	})
}
