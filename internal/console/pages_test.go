package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/internal/testkit/cut"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// O6–O9: every page, on jobs that have run, and every act on them.
func TestO7Pages(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	for name, test := range map[string]func(*testing.T, *site){
		"jobs": jobsPage, "words": searchBox, "job": jobPage, "past": pastPage, "messages": messagesOfJob,
		"verify": verifyPage, "lists": listPages, "refused": refusedPages, "foreign": foreignRequests, "away": awayServers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := *w
			x.t = t
			test(t, &x)
		})
	}
}

// Where a server is silent, a page says so within seconds, or is shown without what that one knows.
func awayServers(t *testing.T, w *site) {
	through := func(address string) (*cut.Proxy, string) {
		u, err := url.Parse(address)
		require.NoError(t, err)
		p := cut.New(t, u.Host)
		u.Host = p.Addr()
		return p, u.String()
	}
	var db, bus *cut.Proxy
	cfg := w.home.Config()
	db, cfg.Postgres = through(cfg.Postgres)
	bus, cfg.NATS = through(cfg.NATS)
	w.rt = w.home.Open(cfg)
	w.page = httptest.NewServer(guarded(w.rt, access.Config{Local: &access.Who{Name: "ada", Role: access.Operator}}))
	t.Cleanup(w.page.Close)
	const blind = "it cannot be read here"
	require.Eventually(t, func() bool { return !strings.Contains(w.get("/topics"), blind) }, patience, 20*time.Millisecond)
	bus.Both()
	began := time.Now()
	has(t, w.get("/topics"), blind)
	require.Less(t, time.Since(began), 10*time.Second, "queues are asked for 2 s")
	db.Both()
	began = time.Now()
	a := w.do(w.request(http.MethodGet, "/jobs", nil))
	require.Less(t, time.Since(began), 15*time.Second, "the database is asked for 5 s")
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	has(t, a.Body, "The database does not answer")
}

func jobsPage(t *testing.T, w *site) {
	all := w.get("/jobs")
	for _, key := range []string{"done", "failing", "parked", "waiting", "nightly-1"} {
		has(t, all, `">`+key+`</a>`)
	}
	hasNot(t, all, "have no index")
	has(t, all, "1 dead letter waits</a> for a decision")
	open := w.get("/jobs?state=open&flow=order")
	has(t, open, ">parked</a>")
	hasNot(t, open, ">done</a>")
	hasNot(t, open, "Only the last 24 hours")
	has(t, w.get("/jobs?state=completed"), "Only the last 24 hours", "a filter without an index has a time range")
	for waits, key := range map[string]string{
		"waits=topic&topic=books.close": "nightly-1", "waits=topic": "nightly-1", "waits=signal:approved": "waiting", "waits=timer": "waiting", "waits=person": "parked",
	} {
		page := w.get("/jobs?" + waits)
		has(t, page, ">"+key+"</a>", waits)
		hasNot(t, page, ">done</a>")
		hasNot(t, page, "Only the last 24 hours")
	}
	has(t, w.get("/jobs?waits=child"), "No jobs.")
	has(t, w.get("/jobs?tag=customer:42"), ">done</a>")
	hasNot(t, w.get("/jobs?tag=customer:42"), "Only the last 24 hours")
	has(t, w.get("/jobs?parent=done"), ">invoice 1</a>")
	has(t, w.get("/jobs?from=2020-01-01T00:00&to=2020-01-02T00:00"), "No jobs.")
	has(t, w.get("/jobs/counts?flow=order"), `>completed</a> <b>`)
	require.Equal(t, w.of("done"), w.do(w.request(http.MethodGet, "/job?key=done", nil)).Header.Get("Location"))
	for _, wrong := range []string{"/jobs?state=lost", "/jobs?last=2y", "/jobs?from=soon", "/jobs?before=x"} {
		require.Equal(t, http.StatusBadRequest, w.do(w.request(http.MethodGet, wrong, nil)).StatusCode, wrong)
	}
	require.Equal(t, http.StatusNotFound, w.do(w.request(http.MethodGet, "/job?key=nobody", nil)).StatusCode)
	has(t, all, `Failed in the last hour: <a class="whole" href="/jobs?flow=order&amp;state=failed">order</a> 1, the last <time`)
	for key, note := range map[string]string{
		"broken":    `class="note bad"><span title="attempt 3 &lt;b&gt;failed&lt;/b&gt;">`,
		"nightly-1": `class="note bad"><span title="close: nobody serves books.close">`, "waiting": `class="note"><span title="approve: waits for signal approved`,
		"parked": `class="note bad"><span title="charge: waits for a decision: `,
	} {
		_, row, _ := strings.Cut(all, `">`+key+`</a>`)
		row, _, _ = strings.Cut(row, "\n")
		has(t, row, note, key)
	}
	require.Regexp(t, `<time datetime="[^"]*Z" title="[^"]* UTC">(just now|\d+ min ago)</time>`, all)
}

// O7: a line of words is a filter: it leads to the list, whose page has the words again, each with a link to
// the list without it. What is no word is told at the box.
func searchBox(t *testing.T, w *site) {
	a := w.do(w.request(http.MethodGet, "/jobs?q="+url.QueryEscape(`state:failed,open state:open flow:order tag:a tag:b since:90m "o 1"`), nil))
	require.Equal(t, http.StatusSeeOther, a.StatusCode, a.Body)
	q, err := url.ParseQuery(strings.TrimPrefix(a.Header.Get("Location"), "/jobs?"))
	require.NoError(t, err)
	require.Equal(t, url.Values{"state": {"failed", "open", "open"}, "flow": {"order"}, "tag": {"a,b"}, "last": {"90m"}, "prefix": {"o 1"}}, q)
	page := w.get(a.Header.Get("Location"))
	has(t, page, `value="state:open state:failed flow:order tag:a tag:b since:90m &#34;o 1&#34;"`)
	has(t, page, `<li>tag:a <a href="/jobs?flow=order&amp;last=90m&amp;prefix=o&#43;1&amp;state=open&amp;state=failed&amp;tag=b" aria-label="Without tag:a">`)
	has(t, page, `<option value="90m" selected>`)
	has(t, w.get("/jobs?flow=order"), `<a href="/jobs?flow=order&amp;last=all" aria-label="Without since:24h">`)
	for words, says := range map[string]string{
		"state:lost": "use one of [open ", "since:2y": "use how long ago, such as 15m", "since:0h": "how long ago", "sate:open": "no filter is called &#34;sate&#34;: use state:, flow:, ",
		"a b": "Put what has a space in quotes", `flow:"x`: "a quote is not closed", "flow:": "write for example flow:order", "waits:luck": "use topic, signal, timer",
		"flow:a flow:b": "flow: is given twice", "parent:nobody": "nobody", "until:soon": "a moment in UTC",
	} {
		a := w.do(w.request(http.MethodGet, "/jobs?q="+url.QueryEscape(words), nil))
		require.Equal(t, http.StatusBadRequest, a.StatusCode, words)
		has(t, a.Body, says, words)
		has(t, a.Body, `aria-invalid="true" aria-describedby="problem"`, words)
	}
}

func jobPage(t *testing.T, w *site) {
	failing := w.get(w.of("failing"))
	has(t, failing, "completed")
	has(t, failing, `class="graph"`)
	has(t, failing, `class="timeline"`)
	has(t, failing, "3 passes", "a cycle is folded, with its count")
	has(t, failing, "look ×3</text>", "a node says how often it was passed")
	has(t, failing, ">×2</text>", "a way back says how often it was gone")
	for tab, text := range map[string]string{
		"journal": "attempt 2 &lt;b&gt;failed&lt;/b&gt;", // what jobs say is no markup
		"ledgers": "Leg2 messages accepted", "effects": "r-2", "children": "failing/invoice", "activities": "r-2", "open": "Nothing.",
	} {
		page := w.get(w.of("failing") + "?tab=" + tab)
		has(t, page, text, tab)
		has(t, page, "tab="+tab+`#h-parts" aria-current="true">`)
	}
	has(t, failing, `href="http://127.0.0.1:16686/trace/`+spans.Of(w.id("failing"), "").Trace.String()+`"`)
	parked := w.get(w.of("parked"))
	has(t, parked, "quipu dead")
	has(t, parked, "waits for a person")
	has(t, parked, `name="verdict" value="done"`)
	has(t, w.get(w.of("waiting")), "approved")
	has(t, w.get(w.of("nightly-1")), "no process that is alive has one")
	hasNot(t, w.get(w.of("failing")+"?tab=journal&q=receipt"), "No event fits.")
	has(t, w.get(w.of("failing")+"?tab=journal&q=nothing-has-this"), "No event fits.")
	has(t, w.get(w.of("failing")+"?activity=look"), "Parts of look")
	child, err := w.rt.Jobs(t.Context(), quipu.JobFilter{Parent: w.id("done")})
	require.NoError(t, err)
	has(t, w.get("/jobs/"+child.Jobs[0].ID.String()), `>done</a> (invoice)`)
	export := w.do(w.request(http.MethodGet, w.of("done")+"/export", nil))
	has(t, export.Header.Get("Content-Disposition"), "attachment")
	require.Contains(t, export.Body, w.id("done").String())
}

// The page of a job at an entry shows what the terminal's replay shows.
func pastPage(t *testing.T, w *site) {
	first := w.get(w.of("failing") + "?at=1")
	has(t, first, "As it stood at entry 1")
	hasNot(t, first, "r-2")
	hasNot(t, first, "Interrupt</button>", "the past cannot be changed")
	j, err := w.rt.Job(t.Context(), quipu.Job{Key: "failing"})
	require.NoError(t, err)
	last := w.get(w.of("failing") + "?at=" + itoa(j.Entries))
	has(t, last, "Nothing was open then.")
	for seq := int64(1); seq <= j.Entries; seq++ {
		has(t, w.get(w.of("failing")+"?at="+itoa(seq)), "As it stood at entry "+itoa(seq)+" of "+itoa(j.Entries))
	}
	require.Equal(t, http.StatusNotFound, w.do(w.request(http.MethodGet, w.of("failing")+"?at=9999", nil)).StatusCode)
}

// O8: a job's messages stand on its page at every entry as the journal tells them there, each with its
// ledger; what caused one, and what it caused, are links to their rows.
func messagesOfJob(t *testing.T, w *site) {
	j, err := w.rt.Job(t.Context(), quipu.Job{Key: "failing"})
	require.NoError(t, err)
	for at := int64(1); at <= j.Entries; at++ {
		past, err := w.rt.Inspect(t.Context(), quipu.Job{Key: "failing"}, view.Want{At: at, Messages: true})
		require.NoError(t, err)
		page := w.get(w.of("failing") + "?tab=messages&at=" + itoa(at))
		require.Len(t, regexp.MustCompile(`<tr id="m-`).FindAllString(page, -1), len(past.Messages), at)
		for i := range past.Messages {
			m := &past.Messages[i]
			_, row, there := strings.Cut(page, `<tr id="m-`+m.GUID.String()+`">`)
			require.True(t, there, "%s at entry %d", m.GUID, at)
			row, _, _ = strings.Cut(row, "\n")
			has(t, row, string(m.Kind))
			if m.Ledger != nil {
				for _, g := range inspect.MessageDigits(*m.Ledger) {
					has(t, row, `title="`+g.Means+`">`+g.Text+`</span>`)
				}
			}
			if m.Accepted > 0 {
				has(t, row, `<a href="?at=`+itoa(m.Accepted)+`"`)
			}
			for _, other := range append(m.Causes, m.CausedBy) {
				if !other.IsZero() {
					has(t, row, `<a href="#m-`+other.String()+`">`)
					has(t, page, `<tr id="m-`+other.String()+`">`)
				}
			}
		}
	}
}

func verifyPage(t *testing.T, w *site) {
	page := w.get(w.of("failing") + "?verify=1")
	has(t, page, "No check is violated.")
	has(t, page, ">V17</th>")
}

func listPages(t *testing.T, w *site) {
	has(t, w.get("/topics"), "books.close")
	has(t, w.get("/topics"), "1 topic that nobody serves")
	topics := w.get("/topics")
	has(t, topics, `<tr class="nobody"><th scope="row"><a class="row whole" href="/jobs?waits=topic:books.close">books.close</a></th><td><strong class="bad">nobody</strong></td><td class="number">1</td>`)
	has(t, topics, `<th scope="col" class="number">Mean run</th>`)
	require.Regexp(t, `>echo</a></th>.*<td class="number">0</td><td class="number">0</td><td class="number">0</td><td class="number"></td>`, topics, "it may begin early, and has not run")
	rate := regexp.MustCompile(`payments.charge</a></th>.*<td class="number">0\.[0-9]+</td>`)
	// it comes with the next renewal of the session, and is that of a minute
	for n := 0; !rate.MatchString(w.get("/topics")); n++ {
		require.Less(t, n, 300, "no rate")
		if n%40 == 20 {
			_, err := w.rt.Call(devtest.Context(t), "payments.charge", "rate-"+strconv.Itoa(n), map[string]any{"order": 5})
			require.NoError(t, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	has(t, w.get("/processes"), "worker-1")
	has(t, w.get("/flows"), `/flows/order?version=1`)
	has(t, w.get("/flows/order"), `class="graph"`)
	has(t, w.get("/flows/order?with=1"), "Nothing.")
	has(t, w.get("/schedules"), "Europe/Berlin")
	has(t, w.get("/dead"), "parked")
	has(t, w.get("/space"), "Epoch")
	has(t, w.get("/bulk?flow=order"), "<strong>5 jobs</strong>")
	require.Contains(t, w.get("/bulk/export?flow=order"), w.id("done").String())
	has(t, w.get("/assets/console.css"), "prefers-color-scheme")
}

func refusedPages(t *testing.T, w *site) {
	for page, status := range map[string]int{
		"/jobs/x": 404, "/jobs/a/b": 404, "/jobs/x/value": 400, w.of("done") + "?tab=none": 400, "/jobs/" + journal.JobID{1}.String(): 404, "/flows/none": 400, "/nothing": 404, "/live?page=http://example.com/": 400, "/live?page=/live": 400,
		w.of("done") + "?at=-1": 400,
	} {
		a := w.do(w.request(http.MethodGet, page, nil))
		require.Equal(t, status, a.StatusCode, page)
		has(t, a.Body, `role="alert"`, page)
		has(t, a.Body, `action="/job"`, page)
	}
	child, err := w.rt.Jobs(t.Context(), quipu.JobFilter{Parent: w.id("failing")})
	require.NoError(t, err)
	require.Contains(t, child.Jobs[0].Key, "/")
	for key, path := range map[string]string{"failing": "/jobs/failing", child.Jobs[0].Key: "/jobs/" + child.Jobs[0].Key} {
		a := w.do(w.request(http.MethodGet, path+"?tab=journal", nil))
		require.Equal(t, http.StatusSeeOther, a.StatusCode, path)
		require.Equal(t, w.of(key)+"?tab=journal", a.Header.Get("Location"))
	}
	for _, form := range []url.Values{
		{},
		{"id": {"1"}},
		{"id": {"1"}, "verdict": {"retry"}},
		{"id": {"1"}, "verdict": {"done"}, "reason": {"x"}, "result": {"{"}},
		{"id": {"1"}, "verdict": {"fail"}, "reason": {"x"}, "code": {"200"}},
		{"id": {"1"}, "verdict": {"burn"}, "reason": {"x"}},
		{"id": {"x"}, "verdict": {"retry"}, "reason": {"x"}, "effect": {"abc"}},
	} {
		require.Equal(t, http.StatusBadRequest, w.post("/dead", form).StatusCode, form)
	}
	require.Equal(t, http.StatusBadRequest, w.post("/bulk", url.Values{"act": {"burn"}, "reason": {"x"}}).StatusCode)
	require.Equal(t, http.StatusBadRequest, w.post(w.of("waiting")+"/interrupt", url.Values{}).StatusCode)
}

// O6: a page of somebody else reaches nothing by the browser of who has a console.
func foreignRequests(t *testing.T, w *site) {
	for _, header := range []http.Header{
		{"Origin": {"http://example.com"}},
		{"Origin": {"null"}},
		{"Origin": {w.page.URL}, "Sec-Fetch-Site": {"cross-site"}},
	} {
		req := w.request(http.MethodPost, w.of("waiting")+"/interrupt", url.Values{"reason": {"x"}})
		for name, values := range header {
			req.Header.Set(name, values[0])
		}
		require.Equal(t, http.StatusForbidden, w.do(req).StatusCode, header)
	}
	for host, status := range map[string]int{
		"example.com": 421, "127.0.0.1.example.com": 421, "10.0.0.1:80": 421, "[2001:db8::1]:80": 421, "": 200, "localhost:1": 200, "[::1]:9": 200, "127.0.0.9": 200,
	} {
		req := w.request(http.MethodGet, "/processes", nil)
		req.Host = host
		require.Equal(t, status, w.do(req).StatusCode, host)
	}
	a := w.do(w.request(http.MethodGet, "/jobs?flow=order", nil))
	has(t, a.Header.Get("Content-Security-Policy"), "script-src 'self'")
	hasNot(t, a.Header.Get("Content-Security-Policy"), "unsafe")
	require.NotRegexp(t, `(?i)<script>|<style|\sstyle=|\son[a-z]+=|javascript:`, w.get(w.of("failing")))
	j, err := w.rt.Job(t.Context(), quipu.Job{Key: "waiting"})
	require.NoError(t, err)
	require.Equal(t, journal.JobOpen, j.State)
}

// has wants the text in a page. Its message is short.
func has(t *testing.T, page, text string, says ...string) {
	t.Helper()
	if !strings.Contains(page, text) {
		require.FailNow(t, "the page has no "+text, strings.Join(says, " "))
	}
}

func hasNot(t *testing.T, page, text string, says ...string) {
	t.Helper()
	if strings.Contains(page, text) {
		require.FailNow(t, "the page has "+text, strings.Join(says, " "))
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// What a browser reads whole is compressed for it. A part of it is not: the bytes that it counts are
// those of the whole.
func TestCompression(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	const page = "/assets/console.css"
	whole := w.get(page)
	req := w.request(http.MethodGet, page, nil)
	req.Header.Set("Accept-Encoding", "gzip")
	require.Equal(t, "gzip", w.do(req).Header.Get("Content-Encoding"))
	req.Header.Set("Range", "bytes=0-2047")
	a := w.do(req)
	require.Equal(t, http.StatusPartialContent, a.StatusCode)
	require.Equal(t, whole[:2048], a.Body)
}
