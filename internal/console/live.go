package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/api/access"
)

const (
	// maxStreams bounds the pages that are followed at the same time, maxStreamsOfOne those of one
	// person.
	maxStreams      = 64
	maxStreamsOfOne = 16
	// lookAgain is the least pause between two looks at a page that is followed; making a page that
	// takes long, or waiting for others to be made, makes the pause longer.
	lookAgain = time.Second
	// slower is how many times as long as the look itself the pause is at least.
	slower = 10
	// followWait bounds the making of a page that is followed.
	followWait = 10 * time.Second
	// maxFollowed bounds a page that is followed, bytes. A larger one is followed no more.
	maxFollowed = 1 << 20
	// maxAddress bounds the address of a page that is followed, bytes.
	maxAddress = 4 << 10
	// follows is how long one stream lasts; then the browser asks again.
	follows = 10 * time.Minute
)

// followed stands in the context of a page that is made for somebody who follows it.
type followed struct{}

// passing are parameters of an address that say how somebody came to a page, or which part of it a
// browser had asked for.
var passing = []string{"said", "history", "part"}

// live makes the pages that are followed. Those who may see the same, and follow the same page,
// share it; and of all pages one is made at a time.
type live struct {
	streams *access.Places
	turn    chan struct{} // whoever has it makes a page

	mu    sync.Mutex
	pages map[sight]*sighted
}

func newLive() *live {
	return &live{
		streams: access.NewPlaces("pages that are followed", maxStreams, maxStreamsOfOne), turn: make(chan struct{}, 1),
		pages: map[sight]*sighted{},
	}
}

// sight is a page as those see it who may see the same.
type sight struct {
	address  string
	role     access.Role
	payloads bool
	said     bool // the page shows what its address says: see render
}

// sighted is what a page looked like last.
type sighted struct {
	followers int // under live.mu

	making chan struct{} // whoever has it makes it, or looks at what was made
	body   []byte        // the part between header and footer; nil: it was not made yet
	sum    [sha256.Size]byte
	still  bool      // it does not follow the space any more
	err    error     // why it could not be made
	due    time.Time // when it is made anew
}

// share joins those who follow a page.
func (l *live) share(s sight) (p *sighted, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p = l.pages[s]
	if p == nil {
		p = &sighted{making: make(chan struct{}, 1)}
		l.pages[s] = p
	}
	p.followers++
	return p, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.followers--; p.followers == 0 {
			delete(l.pages, s)
		}
	}
}

// look is a copy of what a page looks like by now. It is made anew if that is due, for all that
// share it.
func (l *live) look(
	ctx context.Context, p *sighted, makes func(context.Context) ([]byte, bool, error),
) (body []byte, sum [sha256.Size]byte, still bool, due time.Time, err error) {
	select {
	case p.making <- struct{}{}:
		defer func() { <-p.making }()
	case <-ctx.Done():
		return nil, sum, false, due, context.Cause(ctx)
	}
	if time.Now().Before(p.due) {
		return p.body, p.sum, p.still, p.due, p.err
	}
	began := time.Now()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, sum, false, due, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followWait) // others want it, too
	body, still, err = makes(ctx)
	cancel()
	<-l.turn
	if p.err = err; err == nil {
		p.body, p.sum, p.still = body, sha256.Sum256(body), still
	}
	p.due = time.Now().Add(max(lookAgain, slower*time.Since(began)))
	return p.body, p.sum, p.still, p.due, p.err
}

// follow tells a page that is open what it looks like by now, by server-sent events: the part
// between header and footer, whenever it has changed. Only pages of the table of routes that are
// live can be followed, with the parameters that the table names: nothing else is made again and
// again for who asks once.
func (c *console) follow(w http.ResponseWriter, r *http.Request) {
	asked, show, err := c.livePage(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	who := access.Of(r.Context())
	giveBack, refused := c.live.streams.Take(who.Name)
	if refused != nil {
		w.Header().Set("Retry-After", "30")
		refused.Answer(w, r)
		return
	}
	defer giveBack()
	shared, leave := c.live.share(sight{asked.URL.RequestURI(), who.Role, who.Payloads, ownPage(r)})
	defer leave()
	look := func() (body []byte, sum [sha256.Size]byte, still bool, due time.Time, err error) {
		return c.live.look(r.Context(), shared, func(ctx context.Context) ([]byte, bool, error) {
			return c.part(ctx, asked, show)
		})
	}
	body, sum, still, due, err := look()
	if status, _ := statusOf(err); err != nil && status < http.StatusInternalServerError {
		c.fail(w, r, err) // there is no such page
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	var last [sha256.Size]byte
	for end := time.Now().Add(follows); ; body, sum, still, due, err = look() {
		name, text := "", ""
		switch {
		case errors.Is(err, errLarge):
			name, text = "over", err.Error()
		case err == nil && sum != last:
			name, text, last = "page", string(body), sum
		}
		if said := c.event(w, name, text); said != nil {
			return
		}
		if err == nil && still {
			_ = c.event(w, "over", "This page does not change any more.")
		}
		if errors.Is(err, errLarge) || err == nil && still {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(time.Until(due)):
		}
		if time.Now().After(end) {
			return
		}
	}
}

// event writes an event at once; without a name it only shows that the stream is there.
func (c *console) event(w http.ResponseWriter, name, text string) error {
	access.Extend(w, access.StallWait)
	line := ": still\n\n"
	if name != "" {
		data, _ := json.Marshal(text) // a string: it cannot fail
		line = fmt.Sprintf("event: %s\ndata: %s\n\n", name, data)
	}
	if _, err := w.Write([]byte(line)); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// livePage is the request for the page that r wants to follow, as who follows it, and what reads it.
func (c *console) livePage(r *http.Request) (*http.Request, show, error) {
	text := r.URL.Query().Get("page")
	page, err := url.Parse(text)
	if err != nil || len(text) > maxAddress || page.Host != "" || page.Scheme != "" || !strings.HasPrefix(page.Path, "/") ||
		path.Clean(page.Path) != page.Path {
		return nil, nil, bad("page: give the address of a page of the console, of at most %d bytes", maxAddress)
	}
	asked := (&http.Request{
		Method: http.MethodGet, URL: &url.URL{Path: page.Path}, Header: http.Header{},
	}).WithContext(r.Context())
	_, pattern := c.mux.Handler(asked)
	route, is := routes[pattern]
	if !is || !route.live {
		return nil, nil, bad("page %.80q: it cannot be followed", text)
	}
	query, err := url.ParseQuery(page.RawQuery)
	if err == nil {
		err = once(query)
	}
	if err != nil {
		return nil, nil, bad("page %.80q: %v", text, err)
	}
	for name, values := range query {
		if all := append(route.query, passing...); values[0] != "" && !slices.Contains(all, name) {
			return nil, nil, bad("page %.80q: with the parameter %.40q it cannot be followed", text, name)
		}
		if values[0] == "" || name == "history" || name == "part" {
			query.Del(name)
		}
	}
	asked.URL.RawQuery = query.Encode()
	asked.Header.Set(fetchSite, r.Header.Get(fetchSite))
	asked.SetPathValue("id", path.Base(page.Path)) // of the one pattern that has a value
	return asked, route.show, nil
}

var errLarge = fmt.Errorf("the page has over %d bytes, and is followed no more: reload it to see it anew", maxFollowed)

// part makes the part of a page between header and footer. still says that it does not follow the
// space.
func (c *console) part(ctx context.Context, r *http.Request, show show) (body []byte, still bool, err error) {
	ctx = context.WithValue(ctx, followed{}, true)
	r = r.WithContext(ctx)
	v, err := show(c, ctx, r)
	if err != nil {
		return nil, false, err
	}
	if v.Redirect != "" {
		return nil, false, bad("it stands at another address: %s", v.Redirect)
	}
	c.named(r, v)
	out := &bounded{most: maxFollowed}
	if err := c.pages.sets[v.Template].ExecuteTemplate(out, "main", v); err != nil {
		return nil, false, err
	}
	return bytes.TrimSpace(out.Bytes()), v.Still, nil
}

// bounded is a buffer that takes so many bytes.
type bounded struct {
	bytes.Buffer
	most int
}

// Write implements io.Writer: errLarge.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errLarge
	}
	return b.Buffer.Write(p)
}
