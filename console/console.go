package console

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/quipu-journal/quipu"
)

// Config is what New needs beside the runtime. The zero value is good.
type Config struct {
	// Build is this build, as entries of the journal name builds.
	Build string
	// Space is the name of the space, for the title.
	Space string
	// Who is written to the journal with what is decided here; default: console.
	Who string
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
}

// maxStreams bounds the pages that follow the space at the same time. Each is made anew about once
// a second.
const maxStreams = 32

// New returns the console of the runtime's space (O6). It answers requests to a loopback address
// alone: another Host is refused, and so is an act that another page asks for.
func New(rt *quipu.Runtime, cfg Config) http.Handler {
	if cfg.Who == "" {
		cfg.Who = "console"
	}
	if cfg.Space == "" {
		cfg.Space = quipu.DefaultSpace
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &console{rt: rt, cfg: cfg, mux: http.NewServeMux(), live: make(chan struct{}, maxStreams)}
	c.pages = newPages()
	c.routes()
	return c.guard(zipped(c.mux))
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
		c.mux.Handle(pattern, c.page(show))
	}
	c.mux.HandleFunc("GET /job", c.find)
	c.mux.HandleFunc("GET /jobs/{id}/export", c.export)
	c.mux.HandleFunc("GET /bulk/export", c.exportMany)
	c.mux.HandleFunc("GET /live", c.follow)
	c.mux.HandleFunc("POST /dead", c.decide)
	c.mux.HandleFunc("POST /jobs/{id}/interrupt", c.interrupt)
	c.mux.HandleFunc("POST /bulk", c.runBulk)
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
