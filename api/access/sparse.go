package access

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Limits of what strangers make a server write to its log.
const (
	sayEvery  = 10 * time.Second // between two lines of one kind
	maxText   = 200              // bytes of a path, an address or a method
	maxFault  = 4 << 10          // bytes of what net/http says, such as the stack of a panic
	ofNetHTTP = "net/http"       // the kind of what net/http says

	tokenFault = "token" // the kind of looks at tokens that failed
)

// sparse counts what would be a line each time, and lets one line of a kind through in sayEvery.
// Kinds are codes of problems, so there are few.
type sparse struct {
	mu   sync.Mutex
	kind map[string]*unsaid
}

// unsaid is what was not said of a kind.
type unsaid struct {
	n    int64
	said time.Time
}

// count counts one of a kind. It says whether there is a line about it now, and how many there were
// since the last line, this one included.
func (s *sparse) count(kind string) (since int64, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind == nil {
		s.kind = map[string]*unsaid{}
	}
	u := s.kind[kind]
	if u == nil {
		u = &unsaid{}
		s.kind[kind] = u
	}
	u.n++
	if !u.said.IsZero() && time.Since(u.said) < sayEvery {
		return u.n, false
	}
	since = u.n
	u.n, u.said = 0, time.Now()
	return since, true
}

// cut is at most maxText bytes of a text that a stranger chose.
func cut(text string) string {
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// faults is the log of an http.Server, which writes a line for each connection that fails and for
// each odd address.
type faults struct {
	log *slog.Logger
	sparse
}

// Write implements io.Writer.
func (f *faults) Write(p []byte) (int, error) {
	if since, say := f.count(ofNetHTTP); say {
		text := p[:min(len(p), maxFault)]
		f.log.Warn("the HTTP server says", "since_last", since, "text", strings.ToValidUTF8(strings.TrimSpace(string(text)), ""))
	}
	return len(p), nil
}
