package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"
)

const (
	// lookAgain is the least pause between two looks at a page that is followed; making a page that
	// takes long makes the pause longer.
	lookAgain = time.Second
	// slower is how many times as long as the look itself the pause is at least.
	slower = 10
	// follows is how long one stream lasts; then the browser asks again.
	follows = 10 * time.Minute
)

// followed stands in the context of a page that is made for somebody who follows it.
type followed struct{}

// follow tells a page that is open what it looks like by now, by server-sent events: the part
// between header and footer, whenever it has changed. The page is made by the same code as for a
// request, and as the person who follows it.
func (c *console) follow(w http.ResponseWriter, r *http.Request) {
	page, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil || page.Host != "" || page.Scheme != "" || !strings.HasPrefix(page.Path, "/") || strings.HasPrefix(page.Path, "/live") {
		http.Error(w, "page: give the address of a page of the console", http.StatusBadRequest)
		return
	}
	select {
	case c.live <- struct{}{}:
		defer func() { <-c.live }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, fmt.Sprintf("%d pages are followed already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	out := endless(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	asked := r.Clone(context.WithValue(r.Context(), followed{}, true))
	asked.URL, asked.RequestURI = page, page.RequestURI()
	asked.Header.Del("Accept-Encoding")
	var last [sha256.Size]byte
	end := time.NewTimer(follows)
	defer end.Stop()
	for {
		began := time.Now()
		made := httptest.NewRecorder()
		c.mux.ServeHTTP(made, asked)
		body := between(made.Body.String())
		if sum := sha256.Sum256([]byte(body)); made.Code == http.StatusOK && sum != last {
			last = sum
			text, _ := json.Marshal(body) // a string: it cannot fail
			if _, err := fmt.Fprintf(w, "event: page\ndata: %s\n\n", text); err != nil {
				return
			}
		} else if _, err := fmt.Fprint(w, ": still\n\n"); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-time.After(max(lookAgain, slower*time.Since(began))):
		}
	}
}

// endless lets an answer last as long as somebody reads it, whatever the server's timeouts are.
func endless(w http.ResponseWriter) *http.ResponseController {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // a server that cannot do it has no such timeouts
	_ = c.SetWriteDeadline(time.Time{})
	return c
}

// between is what stands in the element main of a page.
func between(page string) string {
	_, page, _ = strings.Cut(page, `<main id="main" tabindex="-1">`)
	page, _, _ = strings.Cut(page, "</main>")
	return page
}
