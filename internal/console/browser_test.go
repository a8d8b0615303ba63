package console_test

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/audit.js
var audit string

// pictures names the directory that pictures of all pages are kept in; "": none are.
const pictures = "QUIPU_PICTURES"

// maxWeight bounds what a page loads over the network, bytes.
const maxWeight = 200_000

// O13: the pages in a browser. One space and one browser serve all cases; each has a tab and jobs of
// its own.
func TestO13Browser(t *testing.T) {
	t.Parallel()
	w := newSite(t)
	b := newBrowser(t)
	for name, test := range map[string]func(*tab){
		"pages": everyPage, "live": livePages, "keyboard": keysAlone, "tools": toolsByMouse, "acts": actsByMouse,
		"long": longPages,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(b.tab(t, w))
		})
	}
}

// browser is a headless Chromium.
type browser struct{ ctx context.Context }

// ready is said of a page that is there whole.
const ready = `document.readyState === "complete"`

// newBrowser starts Chromium, or skips the test where there is none: `make test` installs it. Its
// headless shell draws no window round the pages, which takes as long as the pages.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("Chromium is not installed: scripts/ensure-chromium says how")
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options, chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(cancelTab)
	require.NoError(t, chromedp.Do(ctx))
	return &browser{ctx}
}

// tab is one page of the browser. It notes what a page must not do.
type tab struct {
	t   *testing.T
	w   *site
	ctx context.Context

	mu     sync.Mutex
	faults []string
	weight int64
}

// tab opens a tab for a test.
func (b *browser) tab(t *testing.T, of *site) *tab {
	t.Helper()
	w := *of
	w.t = t
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, 3*patience) // all pages in all looks, on a busy machine
	t.Cleanup(cancelTime)
	x := &tab{t: t, w: &w, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, x.heard))
	for _, on := range []cdp.Command[cdp.Empty, cdp.Empty]{log.Enable, runtime.Enable} {
		command(x, on, cdp.Empty{})
	}
	command(x, network.Enable, network.EnableParams{})
	return x
}

func (x *tab) heard(event any) {
	fault := ""
	x.mu.Lock()
	defer x.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault = "console: " + e.Args[0].Description + string(e.Args[0].Value)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		// data: an icon that the browser draws in a field
		if u := e.Request.URL; !strings.HasPrefix(u, x.w.page.URL) && !strings.HasPrefix(u, "data:") {
			fault = "a request to another host: " + e.Request.URL
		}
	case *network.EventLoadingFinished:
		x.weight += int64(e.EncodedDataLength)
	}
	if fault != "" {
		x.faults = append(x.faults, fault)
	}
}

func (x *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	var err error
	for range 10 { // a live update may take away the element that was found
		if err = chromedp.Do(x.ctx, actions...); err == nil || !strings.Contains(err.Error(), "Could not find node") &&
			!strings.Contains(err.Error(), "No node with given id found") {
			break
		}
	}
	require.NoError(x.t, err)
}

// command sends a command of the protocol.
func command[P, R any](x *tab, c cdp.Command[P, R], params P) {
	x.t.Helper()
	_, err := chromedp.Call(x.ctx, c, params)
	require.NoError(x.t, err)
}

// eval is the value of an expression in the page.
func eval[T any](x *tab, expression string) T {
	x.t.Helper()
	v, err := chromedp.Run(x.ctx, chromedp.Evaluate[T](expression))
	require.NoError(x.t, err, expression)
	return v
}

// weighed is how many bytes the page has taken.
func (x *tab) weighed() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.weight
}

// clean wants a page that did nothing wrong.
func (x *tab) clean(says string) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	require.Empty(x.t, x.faults, says)
}

// forgive wants one fault, which the page was to have.
func (x *tab) forgive(text string) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	require.Len(x.t, x.faults, 1)
	require.Contains(x.t, x.faults[0], text)
	x.faults = nil
}

// opened goes to a page and waits until what it loads is there.
func (x *tab) opened(path string) {
	x.t.Helper()
	x.mu.Lock()
	x.weight = 0
	x.mu.Unlock()
	x.run(chromedp.Navigate(x.w.page.URL + path))
	x.is(ready + ` && ![...document.querySelectorAll("[data-load]")].some((x) => !x.querySelector("ul"))`)
}

// is waits until an expression is true, also across pages that follow each other.
func (x *tab) is(expression string) {
	x.t.Helper()
	if assert.Eventually(x.t, func() bool {
		is, err := chromedp.Run(x.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && is
	}, 20*time.Second, 20*time.Millisecond) {
		return
	}
	body, _ := chromedp.Run(x.ctx, chromedp.Evaluate[string](`location.href + " " + document.body.innerText.slice(0, 700).replaceAll("\n", " ")`))
	x.mu.Lock()
	defer x.mu.Unlock()
	require.FailNow(x.t, "it does not become true", "%s\n%s\n%v", expression, body, x.faults)
}

func (x *tab) says(text string) {
	x.t.Helper()
	x.is(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text))
}

func (x *tab) keys(text string) { x.t.Helper(); x.run(chromedp.KeyEvent(text)) }

// looks sets the width of the window and the colours that its user likes.
func (x *tab) looks(width int64, scheme string) {
	x.t.Helper()
	command(x, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 800, DeviceScaleFactor: 1, Mobile: width < 500})
	command(x, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// pictures keeps the page as it looks, for who wants to see it.
func (x *tab) pictures(name string) {
	x.t.Helper()
	dir := os.Getenv(pictures)
	if dir == "" {
		return
	}
	require.NoError(x.t, os.MkdirAll(dir, 0o755))
	eval[chromedp.Void](x, `document.querySelectorAll("details").forEach((x) => { x.open = false })`)
	for end, look := range map[string]look{
		"-390": {390, "light"}, "-390-dark": {390, "dark"}, "-dark": {1280, "dark"}, "": {1280, "light"},
	} {
		x.looks(look.width, look.scheme)
		shot, err := chromedp.Run(x.ctx, chromedp.FullScreenshot(100))
		require.NoError(x.t, err)
		require.NoError(x.t, os.WriteFile(filepath.Join(dir, name+end+".png"), shot, 0o644))
	}
}
