package console_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
	"github.com/stretchr/testify/require"
)

// look is a width of the window and the colours that its user likes.
type look struct {
	width  int64
	scheme string
}

// O13: every page of a space in which jobs have run, in light and dark, wide and at 360 px: nothing
// in the browser's console, nothing from another host, little weight, names for everything,
// contrast, nothing wider than the window. The contrast is that of the colours and the layout that
// of the width: two looks have all of both, and make soak takes each with each.
func everyPage(x *tab) {
	t, w := x.t, x.w
	looks := []look{{1280, "light"}, {360, "dark"}}
	if soak.On() {
		looks = append(looks, look{1280, "dark"}, look{360, "light"})
	}
	for name, path := range map[string]string{
		"jobs": "/jobs", "filtered": "/jobs?flow=order&state=open&state=completed", "counts": "/jobs/counts?last=24h", "none": "/jobs?prefix=nothing",
		"job": w.of("failing"), "broken": w.of("broken"), "lost": "/jobs/nobody", "parked": w.of("parked"), "waiting": w.of("waiting"), "nobody": w.of("nightly-1"), "past": w.of("failing") + "?at=9",
		"verify": w.of("done") + "?verify=1", "activity": w.of("failing") + "?activity=look", "journal": w.of("failing") + "?tab=journal", "ledgers": w.of("failing") + "?tab=ledgers",
		"effects": w.of("failing") + "?tab=effects", "messages": w.of("failing") + "?tab=messages", "open": w.of("waiting") + "?tab=open", "children": w.of("failing") + "?tab=children", "dead": "/dead", "topics": "/topics", "processes": "/processes",
		"flows": "/flows", "flow": "/flows/order?with=1", "again": "/flows/order?again=" + w.id("broken").String(), "schedules": "/schedules", "space": "/space", "bulk": "/bulk?flow=order",
	} {
		x.looks(1280, "light")
		if x.opened(path); name == "lost" {
			x.forgive("404 (Not Found)")
		}
		require.Less(t, x.weighed(), int64(maxWeight), path)
		eval[chromedp.Void](x, `document.querySelectorAll("details").forEach((x) => { x.open = true })`)
		for _, look := range looks {
			x.looks(look.width, look.scheme)
			require.Empty(t, eval[[]string](x, audit), "%s, %d px, %s", path, look.width, look.scheme)
		}
		x.clean(path)
		x.pictures(name)
	}
}

// O13, O6: pages that are open follow the space, and keep what is open, focused and typed.
func livePages(x *tab) {
	t, w := x.t, x.w
	x.opened("/jobs?flow=order&prefix=fresh")
	x.says("No jobs.")
	w.start("fresh", map[string]any{"order": 7, "wait": "1h"})
	x.says("fresh")
	x.opened(w.of("fresh") + "?tab=ledgers")
	x.says("approved")
	eval[chromedp.Void](x, `document.querySelector("details.ledger").open = true; document.querySelector("details.ledger summary").focus()`)
	_, err := w.rt.Signal(t.Context(), "approved", "fresh", nil)
	require.NoError(t, err)
	x.is(`document.querySelector("h1 .state").textContent === "completed"`)
	x.is(`document.querySelector("details.ledger[open] summary") === document.activeElement`)

	w.start("typing", map[string]any{"order": 8, "wait": "1h"})
	w.until("typing", func(j *view.Job) bool { return len(j.Waits) == 1 && len(j.Messages) == 1 })
	x.opened(w.of("typing"))
	eval[chromedp.Void](x, `document.querySelector("#why-end").closest("details").open = true`)
	x.run(chromedp.SendKeys(chromedp.CSS("#why-end"), "half a sen"))
	_, err = w.rt.Signal(t.Context(), "approved", "typing", nil)
	require.NoError(t, err)
	w.ends("typing")
	x.is(`document.querySelector("#live").textContent !== ""`)
	x.is(`document.querySelector("#why-end").value === "half a sen"`)
	x.clean("live")
}

// O13: keys alone reach every page and every act.
func keysAlone(x *tab) {
	w := x.w
	x.opened("/jobs")
	for key, title := range map[string]string{"d": "Dead letters", "t": "Topics", "p": "Processes", "f": "Flows", "s": "Schedules", "x": "Space", "j": "Jobs"} {
		x.press("g"+key, fmt.Sprintf(`document.querySelector("h1").textContent.startsWith(%q) && `, title)+ready)
	}
	x.opened("/jobs")
	x.press("j", `document.activeElement.classList.contains("row")`)
	x.press("j", `document.activeElement !== document.querySelector("a.row")`)
	x.press("k", `document.activeElement === document.querySelector("a.row")`)
	x.press("\r", `location.pathname.startsWith("/jobs/") && `+ready)
	x.press("/", `document.activeElement.id === "jump"`)
	eval[chromedp.Void](x, `document.activeElement.value = ""`) // a driven browser types the key, too
	x.press("failing\r", `document.title.startsWith("failing") && `+ready)
	x.press("[", `document.querySelector(".past") && `+ready)
	x.press("]", `document.querySelector("#at").value === document.querySelector("#at").max && `+ready)
	x.press("?", `document.getElementById("keys").open`)
	x.press("\u001b", `!document.getElementById("keys").open`)

	w.cut("keys")
	x.opened("/dead")
	x.tabTo(`document.activeElement.name === "id" && document.activeElement.closest("li").innerText.includes("keys")`)
	x.keys(" ")
	x.tabTo(`document.activeElement.id === "reason"`)
	x.keys("by keys alone")
	x.tabTo(`document.activeElement.name === "result"`)
	x.keys("null")
	x.tabTo(`document.activeElement.value === "done"`)
	x.keys("\r")
	x.says("1 dead letter decided: done")
	w.ends("keys")
	x.clean("keyboard")
}

// press presses keys until they have done what they do: Chromium drops those that come while a page
// begins.
func (x *tab) press(keys, expression string) {
	x.t.Helper()
	done := func() bool {
		is, err := chromedp.Run(x.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && is
	}
	for range 10 {
		x.keys(keys)
		for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
			if done() {
				return
			}
		}
	}
	x.is(expression)
}

// tabTo presses Tab until the element has the focus.
func (x *tab) tabTo(expression string) {
	x.t.Helper()
	for range 60 {
		x.keys("\t")
		if eval[bool](x, expression) {
			return
		}
	}
	require.Fail(x.t, "Tab does not lead there", expression)
}

// O13: the tools of the pages, by a mouse.
func toolsByMouse(x *tab) {
	w := x.w
	x.opened(w.of("failing"))
	x.click(`a[href*="verify=1"]`)
	x.says("No check is violated.")
	x.opened(w.of("failing"))
	x.click(`svg.graph a[aria-label^="look:"] rect`)
	x.says("Parts of look")
	x.click(`.tabs a[href*="tab=journal"]`)
	x.is(`document.querySelector("table.journal") && location.search.includes("activity=look")`)
	x.slide("3")
	x.says("As it stood at entry 3")
	x.click(`[data-forth]`)
	x.says("As it stood at entry 4")
	wide := eval[float64](x, `document.querySelector("svg.graph").getBoundingClientRect().width`)
	x.click(`[aria-label="Graph larger"]`)
	x.is(fmt.Sprintf(`document.querySelector("svg.graph").getBoundingClientRect().width > %f`, wide))

	x.looks(390, "light")
	x.opened("/jobs")
	x.is(`document.querySelector("a.row").getBoundingClientRect().bottom < innerHeight`)
	x.looks(1280, "light")
	x.opened("/jobs")
	x.run(chromedp.SendKeys(chromedp.CSS("#words"), "state:lost\r"))
	x.is(`document.querySelector("#problem").innerText.includes("use one of") && document.querySelector("#words").value === "state:lost"`)
	x.forgive("400 (Bad Request)")
	x.run(chromedp.SetValue(chromedp.CSS("#words"), "flow:nightly"), chromedp.SendKeys(chromedp.CSS("#words"), "\r"))
	x.is(`document.querySelector("#jobs").innerText.includes("nobody serves books.close")`)
	x.click(`.chips a[aria-label="Without flow:nightly"]`)
	x.is(`location.search === "" && document.querySelector("#jobs tbody tr:nth-child(4)")`)
	x.clean("tools")
}

// click clicks an element of a page that has come whole: from then on its script listens.
func (x *tab) click(selector string) {
	x.t.Helper()
	x.is(ready)
	x.run(chromedp.Click(chromedp.CSS(selector)))
}

// slide moves the slider of a job's page to an entry.
func (x *tab) slide(entry string) {
	x.t.Helper()
	x.is(ready)
	eval[chromedp.Void](x, fmt.Sprintf(`(() => { const s = document.querySelector("#at"); s.value = %s; s.dispatchEvent(new Event("change", {bubbles: true})) })()`, entry))
}

// fill opens the form of an act and fills its fields, at once: a new version of the page comes before
// or not at all.
func (x *tab) fill(form string, fields map[string]string) {
	x.t.Helper()
	values, err := json.Marshal(fields)
	require.NoError(x.t, err)
	x.is(fmt.Sprintf(ready+` && ((form) => {
		if (!form) return false;
		for (let d = form; d; d = d.parentElement) if (d.tagName === "DETAILS") d.open = true;
		for (const [name, text] of Object.entries(%s || {})) {
			const field = form.querySelector("[name=" + name + "]");
			field.value = text;
			field.dispatchEvent(new Event("input", {bubbles: true}));
		}
		return true;
	})(document.querySelector(%q))`, values, form))
}

// O13: every act of the console, by a mouse: a flow is deployed, activated and started, what its job waits
// for is answered, and the job is resumed, forked and interrupted; a dead letter is decided, and an act
// is done to many jobs.
func actsByMouse(x *tab) {
	w := x.w
	for _, version := range []string{"1", "2"} {
		x.opened("/flows")
		x.fill(`form[aria-label="Deploy a flow"]`, map[string]string{"definition": strings.Replace(desk, "VERSION", version, 1)})
		if version == "2" {
			x.click(`form[aria-label="Deploy a flow"] [name=activate]`)
		}
		x.click(`form[aria-label="Deploy a flow"] button`)
		x.says("deployed")
	}
	x.fill(`form[aria-label="Activate the version"]`, nil)
	x.click(`form[aria-label="Activate the version"] button`)
	x.says("new jobs take version 2")
	x.fill(`form[aria-label="Start a job"]`, map[string]string{"key": "by-mouse", "input": `{"n": 7}`})
	x.click(`form[aria-label="Start a job"] button`)
	x.says("the job has begun")
	signalled := func(ok string) {
		x.t.Helper()
		const form = `form[aria-label="Send signal desk.asked to ask"]`
		x.fill(form, map[string]string{"payload": `{"ok": ` + ok + `}`})
		x.click(form + " button")
		x.says("the signal has come")
	}
	signalled("false")
	x.is(`document.querySelector("h1 .state").textContent === "failed"`)
	x.click(`.acts a[href*="again="]`)
	x.is(`document.querySelector("#start-input").value.includes('"n": 7')`)
	x.fill(`form[aria-label="Start a job"]`, map[string]string{"input": `{"n": 8}`})
	x.click(`form[aria-label="Start a job"] button`)
	x.is(`document.querySelector("h1").textContent.startsWith("by-mouse-again")`)
	x.opened(w.of("by-mouse"))
	x.fill(`form[aria-label="Resume the job"]`, map[string]string{"from": "ask", "reason": "ask again"})
	x.click(`form[aria-label="Resume the job"] button`)
	x.says("it goes on as this job")
	signalled("true")
	x.is(`document.querySelector("h1 .state").textContent === "completed"`)
	x.slide("1")
	x.says("As it stood at entry 1")
	w.start("forked", map[string]any{"order": 9, "wait": "1h"})
	w.until("forked", func(j *view.Job) bool { return len(j.Waits) == 1 })
	x.opened(w.of("forked"))
	x.slide("2")
	x.fill(`form[aria-label="Fork the job"]`, map[string]string{"key": "fork", "reason": "what if"})
	x.click(`form[aria-label="Fork the job"] button`)
	x.says("it goes on from entry 2 of the other job")
	w.until("fork", func(j *view.Job) bool { return len(j.Waits) == 1 && len(j.Messages) == 1 })
	x.opened(w.of("fork")) // nothing changes it while its form is filled
	x.fill(`form[aria-label="End the job"]`, map[string]string{"reason": "enough"})
	x.click(`form[aria-label="End the job"] button`)
	x.is(`document.querySelector("h1 .state").textContent === "interrupted"`)
	decideByMouse(x)
	x.clean("acts")
}

func decideByMouse(x *tab) {
	t, w := x.t, x.w
	w.cut("mouse")
	x.opened(w.of("mouse"))
	x.is(`document.querySelector("input[name=id]").checked`)
	x.run(chromedp.SendKeys(chromedp.CSS("#reason"), "seen in the books"))
	x.click(`button[value=done]`) // which does nothing without a result
	x.is(`document.activeElement.name === "result" && document.activeElement.matches(":invalid")`)
	x.run(chromedp.SendKeys(chromedp.CSS("[name=result]"), "null"))
	x.click(`button[value=done]`)
	x.says("1 dead letter decided: done")
	x.is(`document.querySelector("h1 .state").textContent === "completed"`)

	w.start("sale", map[string]any{"order": 9, "wait": "1h"})
	x.opened("/bulk?" + url.Values{"flow": {"order"}, "prefix": {"sale"}}.Encode())
	x.says("The filter selects 1 job")
	x.run(chromedp.SendKeys(chromedp.CSS("#reason"), "sale cancelled"))
	x.click(`button[value=interrupt]`)
	x.says("Finished: 1 of 1 job looked at, 1 done")
	w.ends("sale")
	j, err := w.rt.Job(t.Context(), quipu.Job{Key: "sale"})
	require.NoError(t, err)
	require.Equal(t, journal.JobInterrupted, j.State)
}
