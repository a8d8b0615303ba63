package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/explain"
	"github.com/quipu-journal/quipu/internal/health"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/view"
)

// page is what a template shows.
type page struct {
	Template string
	Title    string
	Section  string // of the navigation
	Still    bool   // the page does not follow the space
	Part     bool   // without the frame around it
	Status   int    // 0: it is there
	Redirect string // the address to go to instead; "": there is none
	Data     any

	Space, Build, Page, Said string // set by render
	// Wrong is what stops the space, or a part of it; set by render.
	Wrong []health.Finding

	now time.Time // by the clock of the database, where that could be asked
}

// ago is a moment with how long ago it was.
type ago struct {
	Time time.Time
	Text string
}

// Ago says how long ago a moment was. A page that is followed says the same for a whole minute, so that
// it is not sent anew for each second.
func (v *page) Ago(t time.Time) ago {
	d := v.now.Truncate(time.Minute).Sub(t)
	switch {
	case t.IsZero():
		return ago{t, "never"}
	case d < time.Minute:
		return ago{t, "just now"}
	case d < time.Hour:
		return ago{t, fmt.Sprintf("%d min ago", d/time.Minute)}
	case d < 48*time.Hour:
		return ago{t, fmt.Sprintf("%d h ago", d/time.Hour)}
	}
	return ago{t, fmt.Sprintf("%d days ago", d/(24*time.Hour))}
}

// pages are the templates, one set for each page.
type pages struct{ sets map[string]*template.Template }

var names = []string{"jobs", "counts", "job", "processes", "topics", "flows", "flow", "schedules", "dead", "space", "bulk", "error"}

// newPages reads the embedded templates; a mistake in one is a mistake of the build.
func newPages() *pages {
	base := template.Must(template.New("frame.html").Funcs(functions).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	p := &pages{sets: map[string]*template.Template{}}
	for _, name := range names {
		p.sets[name] = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return p
}

// link is a page of the navigation, with its key after g.
type link struct{ Section, Page, Text, Key string }

var links = []link{
	{"jobs", "/jobs", "Jobs", "j"},
	{"dead", "/dead", "Dead letters", "d"},
	{"topics", "/topics", "Topics", "t"},
	{"processes", "/processes", "Processes", "p"},
	{"flows", "/flows", "Flows", "f"},
	{"schedules", "/schedules", "Schedules", "s"},
	{"space", "/space", "Space", "x"},
}

// functions are what templates call.
var functions = template.FuncMap{
	"links": func() []link { return links },
	"when":  when, "clock": clock, "micros": time.UnixMicro, "iso": func(t time.Time) string {
		return t.UTC().Format(time.RFC3339Nano)
	},
	"short": func(d any) string { return short(time.Duration(reflect.ValueOf(d).Int())) },
	"rate":  inspect.Rate, "took": func(from, to time.Time) string { return short(to.Sub(from)) },
	"pretty": pretty, "size": size, "cut": cut,
	"counted": func(n any, what string) string { return counted(reflect.ValueOf(n).Int(), what) },
	"class":   func(s view.State) string { return strings.ReplaceAll(string(s), " ", "-") },
	"symbol":  explain.Symbol, "classes": strings.Fields, "dense": dense, "placed": placed, "digits": digitsOf,
	"job": jobPath, "join": strings.Join,
	"look":   look,
	"pair":   func(page *page, data any) pair { return pair{page, data} },
	"query":  func(page, name string, value any) string { return with(page, name, fmt.Sprint(value)) },
	"minus":  func(a any, b int64) int64 { return reflect.ValueOf(a).Int() - b },
	"spaced": func(text view.EffectState) string { return strings.ReplaceAll(string(text), "_", " ") },
}

// pair is what a part of a page shows that is not all of the page.
type pair struct {
	Page *page
	Data any
}

// cut is a text of at most n characters.
func cut(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// dense is how dark the bar of n attempts is, from 1 to 4.
func dense(n int) int {
	switch {
	case n < 3:
		return 1
	case n < 10:
		return 2
	case n < 100:
		return 3
	}
	return 4
}

// render writes a page whole, or the error of its template.
func (c *console) render(w http.ResponseWriter, r *http.Request, status int, v *page) {
	c.named(r, v)
	name := "frame.html"
	if v.Part {
		name = "main"
	}
	var b bytes.Buffer
	if err := c.pages.sets[v.Template].ExecuteTemplate(&b, name, v); err != nil {
		c.cfg.Logger.Error("a page of the console could not be made", "page", v.Template, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the caller may have gone
}

// fetchSite is the header in which a browser says whose page asks.
const fetchSite = "Sec-Fetch-Site"

// ownPage says that a page of the console asks: a link of a stranger puts no words here.
func ownPage(r *http.Request) bool { return r.Header.Get(fetchSite) == "same-origin" }

// named fills what a view shows of the console itself.
func (c *console) named(r *http.Request, v *page) {
	v.Space, v.Build, v.Page = c.cfg.Space, c.cfg.Build, r.URL.RequestURI()
	for _, name := range []string{"said", "history", "part"} {
		v.Page = with(v.Page, name, "")
	}
	v.now = time.Now()
	if v.Template != "error" { // which says what is wrong with the database, and asks it nothing
		v.Wrong, v.now = c.wrong(r.Context())
	}
	if ownPage(r) {
		v.Said = cut(r.URL.Query().Get("said"), 1000)
	}
}

// wrong is what stops the space, or a part of it, and the time by the database. Nothing is said where that
// cannot be read: the page itself says so then.
func (c *console) wrong(ctx context.Context) (all []health.Finding, now time.Time) {
	sight := &health.Sight{}
	all, err := c.reader.Wrong(ctx, sight)
	if err != nil {
		return nil, time.Now()
	}
	return slices.DeleteFunc(all, func(f health.Finding) bool {
		return !f.Stops && f.Kind != health.KindSilent && f.Kind != health.KindBusy
	}), sight.Now
}

// look is the address of the page that shows more of a finding; "": there is none.
func look(f health.Finding) string {
	switch {
	case !f.Job.IsZero():
		return jobPath(f.Job)
	case f.Kind == health.KindDead:
		return "/dead"
	case f.Kind == health.KindNobody, f.Kind == health.KindLong:
		return "/topics"
	case f.Kind == health.KindStuck:
		return "/jobs?state=quarantined"
	}
	return ""
}

// errorPage is the data of the page that says what went wrong, and what to do.
type errorPage struct{ What, Text, Help string }

// helps says what somebody can do who sees an error with this status.
var helps = map[int]string{
	http.StatusBadRequest:         "Go back, and mend what the sentence names.",
	http.StatusForbidden:          "Ask whoever gives out tokens for one with another role.",
	http.StatusNotFound:           "Find a job by its key or its id, or go to a page above. A job that was resumed has its key in its newest generation.",
	http.StatusConflict:           "Go back and reload the page: it shows what became of it.",
	http.StatusGone:               "Its key, its generation and its head are kept. What it did was removed after its time.",
	http.StatusServiceUnavailable: "Reload the page in a moment. If it stays so, look at the database and at the log of this console.",
}

// badError is a request that cannot be read.
type badError struct{ text string }

func (e badError) Error() string { return e.text }

func bad(format string, args ...any) error { return badError{fmt.Sprintf(format, args...)} }

// refusal is a request that is refused, with what its page says.
type refusal struct {
	status     int
	what, text string
}

// Error is the text of the page.
func (r refusal) Error() string { return r.text }

// statusOf is the status of an error, and the title of its page.
func statusOf(err error) (status int, what string) {
	var request badError
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused.status, refused.what
	case errors.As(err, &request), errors.Is(err, quipu.ErrInput), errors.Is(err, quipu.ErrRejected),
		errors.Is(err, quipu.ErrKey):
		return http.StatusBadRequest, "This cannot be done"
	case errors.Is(err, quipu.ErrNotFound):
		return http.StatusNotFound, "Not found"
	case errors.Is(err, quipu.ErrTombstone):
		return http.StatusGone, "Expired"
	case errors.Is(err, quipu.ErrStale):
		return http.StatusConflict, "It has ended already"
	case errors.Is(err, quipu.ErrUnavailable):
		return http.StatusServiceUnavailable, "The database does not answer"
	}
	return http.StatusInternalServerError, "It could not be done"
}

// fail shows an error as a page.
func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, what := statusOf(err)
	// the request has ended, and nothing has failed
	if cause := context.Cause(r.Context()); cause != nil && status >= http.StatusInternalServerError {
		status, what, err = http.StatusServiceUnavailable, "It was broken off", cause
	}
	if status == http.StatusInternalServerError {
		c.cfg.Logger.Error("a request of the console failed", "page", r.Pattern, "error", err)
	}
	said := errorPage{what, err.Error(), helps[status]}
	c.render(w, r, status, &page{Template: "error", Title: what, Still: true, Data: said})
}

// zipped compresses what is text. A stream of events, and a download that may be cut off, are sent as
// they are.
func zipped(next http.Handler) http.Handler {
	wrap, _ := gzhttp.NewWrapper(gzhttp.EnableZstd(false)) // its options are right
	zip := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path == "/live" || strings.HasSuffix(r.URL.Path, "/export") {
			next.ServeHTTP(w, r)
			return
		}
		zip(w, r)
	})
}

// when is a moment with its day. All times of the console are UTC.
func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}

// clock is the time of day of a moment.
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// short is a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// pretty is JSON on several lines.
func pretty(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}

func size(b []byte) string { return counted(len(b), "byte") }

func counted[N int | int64](n N, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(what, "y"))
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// with is an address with one parameter of its query set, or taken away if the value is empty.
func with(page, name, value string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	q := u.Query()
	q.Del(name)
	if value != "" {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.RequestURI()
}
