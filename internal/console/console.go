package console

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/inspect"
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
	rt     *quipu.Runtime
	cfg    Config
	pages  *pages
	mux    *http.ServeMux
	live   *live
	making chan struct{} // a slot for each page that is made now
	reader *inspect.Reader
}

// maxMaking bounds the pages that are made at the same time: one of a job holds its journal in
// memory. Others wait for it, at most readWait.
const maxMaking = 8

// New returns the console of the runtime's space (O6). Viewers see its pages, those who may see no
// payloads without them; clients also start, signal and interrupt jobs, and operators resume and fork them,
// decide on dead letters, deploy flows, and act on many jobs (O11).
func New(rt *quipu.Runtime, cfg Config) http.Handler {
	if cfg.Space == "" {
		cfg.Space = quipu.DefaultSpace
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &console{
		rt: rt, cfg: cfg, reader: below.Reader(rt), pages: newPages(), mux: http.NewServeMux(), live: newLive(),
		making: make(chan struct{}, maxMaking),
	}
	c.routes()
	return zipped(c.mux)
}

func (c *console) routes() {
	assets, _ := fs.Sub(files, "assets") // the directory is embedded
	c.mux.Handle("GET /assets/", http.StripPrefix("/assets/", cached(http.FileServerFS(assets))))
	c.mux.Handle("GET /{$}", http.RedirectHandler("/jobs", http.StatusSeeOther))
	for pattern, route := range routes {
		c.handle(pattern, access.Viewer, c.page(route.show))
	}
	c.handle("GET /", access.Viewer, c.page((*console).lost))
	c.handle("GET /job", access.Viewer, http.HandlerFunc(c.find))
	c.handle("GET /jobs/{id}/export", access.Viewer, c.cfg.Guard.Few(c.seeing(c.export)))
	c.handle("GET /jobs/{id}/value", access.Viewer, c.seeing(c.value))
	c.handle("GET /bulk/export", access.Viewer, c.cfg.Guard.Few(c.seeing(c.exportMany)))
	c.handle("GET /live", access.Viewer, http.HandlerFunc(c.follow))
	c.handle("POST /dead", access.Operator, c.posted(c.decide))
	c.handle("POST /jobs/{id}/interrupt", access.Client, c.acting(c.interrupt))
	c.handle("POST /jobs/{id}/signal", access.Client, c.acting(c.signal))
	c.handle("POST /jobs/{id}/resume", access.Operator, c.cfg.Guard.Few(c.acting(c.resume)))
	c.handle("POST /jobs/{id}/fork", access.Operator, c.cfg.Guard.Few(c.acting(c.fork)))
	c.handle("POST /flows", access.Operator, c.posted(c.deploy))
	c.handle("POST /flows/{name}/start", access.Client, c.posted(c.start))
	c.handle("POST /flows/{name}/activate", access.Operator, c.posted(c.activate))
	c.handle("POST /bulk", access.Operator, c.cfg.Guard.Few(c.posted(c.runBulk)))
}

// route is a page. One that is live can be followed, with some parameters of its query.
type route struct {
	show  show
	live  bool
	query []string
}

// routes are all pages. What streams, downloads or acts is none of them.
var routes = map[string]route{
	"GET /jobs":         {(*console).jobs, true, []string{"flow", "version", "prefix", "tag", "parent", "waits", "topic", "state", "last", "from", "to"}},
	"GET /jobs/{id}":    {(*console).job, true, []string{"activity", "tab", "q", "from"}},
	"GET /processes":    {(*console).processes, true, nil},
	"GET /topics":       {(*console).topics, true, nil},
	"GET /flows":        {(*console).flows, true, nil},
	"GET /schedules":    {(*console).schedules, true, nil},
	"GET /dead":         {(*console).dead, true, []string{"flow", "topic", "reason", "all"}},
	"GET /space":        {(*console).space, true, nil},
	"GET /flows/{name}": {(*console).flow, false, nil},
	"GET /jobs/counts":  {(*console).counts, false, nil},
	"GET /bulk":         {(*console).bulk, false, nil},
}

// handle serves a pattern to those with a role. A query has to say what it says once.
func (c *console) handle(pattern string, role access.Role, h http.Handler) {
	c.mux.Handle(pattern, c.cfg.Guard.Need(role, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.ParseQuery(r.URL.RawQuery)
		if err == nil {
			err = once(query)
		}
		if err != nil {
			c.fail(w, r, bad("the address cannot be read: %v", err))
			return
		}
		h.ServeHTTP(w, r)
	})))
}

// several are the fields of a form or a query that may be given several times.
var several = []string{"id", "state"}

// once refuses a field that is given twice, or has what no text may have.
func once(fields url.Values) error {
	for name, texts := range fields {
		if len(texts) > 1 && !slices.Contains(several, name) {
			return bad("%.40q is given twice: which one counts would be a guess", name)
		}
		for _, text := range texts {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return bad("%.40q has U+0000, or is no UTF-8", name)
			}
		}
	}
	return nil
}

// posted serves what a form asks for. A form of which not all came is none.
func (c *console) posted(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := r.ParseForm()
		switch _, big := errors.AsType[*http.MaxBytesError](err); {
		case big:
			err = refusal{http.StatusRequestEntityTooLarge, "The form is too large", err.Error()}
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = refusal{http.StatusRequestTimeout, "The form did not come in time", "Nothing was done: send it again."}
		case err != nil:
			err = bad("the form cannot be read, and nothing was done: %v", err)
		default:
			err = once(r.PostForm)
		}
		if err != nil {
			c.fail(w, r, err)
			return
		}
		h(w, r)
	})
}

// seeing serves what has payloads to those who may see them.
func (c *console) seeing(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !access.Of(r.Context()).Payloads {
			c.fail(w, r, refusal{http.StatusForbidden, "Not shown to you", "a journal has payloads, which are not shown to a viewer"})
			return
		}
		h(w, r)
	})
}

// show reads what a page shows. Its error becomes a page of its own.
type show func(c *console, ctx context.Context, r *http.Request) (*page, error)

// readWait bounds the making of one page.
const readWait = 60 * time.Second

// awayWait is how long a page waits for a database that is away.
const awayWait = 5 * time.Second

// answers asks the database for its time, so that a page fails after awayWait if it is away: the first read
// of the page would be tried several times, each for that long.
func (c *console) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, awayWait, quipu.ErrUnavailable)
	defer cancel()
	_, err := c.reader.Clock(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// page serves what show reads.
func (c *console) page(show show) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readWait)
		defer cancel()
		select {
		case c.making <- struct{}{}:
			defer func() { <-c.making }()
		case <-ctx.Done():
			c.fail(w, r, refusal{http.StatusServiceUnavailable, "The console is busy", "Too many pages are being made: try again in a moment."})
			return
		}
		err := c.answers(ctx)
		var v *page
		if err == nil {
			v, err = show(c, ctx, r)
		}
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if v.Redirect != "" {
			http.Redirect(w, r, v.Redirect, http.StatusSeeOther)
			return
		}
		c.render(w, r, cmp.Or(v.Status, http.StatusOK), v)
	})
}

// cached lets a browser keep assets for an hour.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		next.ServeHTTP(w, r)
	})
}
