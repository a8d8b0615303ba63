package access

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Limits of a Guard and its Server.
const (
	DefaultMaxBody = 4 << 20 // bytes of a request's body
	MaxRequests    = 512     // at a time, waiting ones included
	MaxOfOne       = 128     // at a time, of one caller
	MaxHeader      = 64 << 10
	headerWait     = 10 * time.Second
	readWait       = 30 * time.Second
	writeWait      = time.Minute
	idleWait       = 2 * time.Minute
)

// Config configures a Guard. With the zero value nobody gets in.
type Config struct {
	// Local is who everybody is that brings no token: for an address that only this machine reaches.
	// nil: everybody has to say who they are.
	Local *Who
	// Tokens says whose token it is, and whether it holds. nil: no token holds.
	Tokens func(ctx context.Context, token string) (who Who, holds bool, err error)
	// Proxy is a proxy that says who has sent a request; nil: there is none.
	Proxy *Proxy
	// ViewersSeePayloads shows payloads to viewers, too.
	ViewersSeePayloads bool
	// TLS says that the server speaks TLS, so that browsers come back with TLS only.
	TLS bool
	// MaxBody bounds the body of a request, bytes; DefaultMaxBody by default.
	MaxBody int64
	// Logger gets a line about every write and every refusal; slog.Default() by default.
	Logger *slog.Logger
}

// Proxy is a proxy that knows who sends a request. It has to replace both headers in what it
// passes on.
type Proxy struct {
	From       []netip.Prefix // its addresses: whoever else sends the headers is not believed
	Header     string         // has the name of who asks
	RoleHeader string         // has their role; Viewer where it is missing
}

// Guard stands before the handlers of a server.
type Guard struct {
	cfg    Config
	origin *http.CrossOriginProtection
	mu     sync.Mutex
	all    int
	of     map[string]int // requests under way, by caller
}

// New makes a Guard.
func New(cfg Config) *Guard {
	cfg.MaxBody = cmp.Or(cfg.MaxBody, DefaultMaxBody)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Guard{cfg: cfg, origin: http.NewCrossOriginProtection(), of: map[string]int{}}
}

// Server returns a server with the limits of this package. Its address and TLS are the caller's.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerWait, ReadTimeout: readWait, WriteTimeout: writeWait, IdleTimeout: idleWait, MaxHeaderBytes: MaxHeader,
	}
}

// Extend gives a response more time: d from now for what is written, and no bound for the
// connection's other side. A handler that waits or streams calls it before each pause.
func Extend(w http.ResponseWriter, d time.Duration) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // not every writer has deadlines
	_ = c.SetWriteDeadline(time.Now().Add(d))
}

// Wrap puts the guard before h. Every request has passed it when h sees it, and Of knows who asks.
func (g *Guard) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.secure(w)
		if !g.enter("") {
			w.Header().Set("Retry-After", "1")
			g.refuse(w, r, NewProblem(http.StatusServiceUnavailable, CodeBusy, "the server has too many requests under way: try again in a moment"))
			return
		}
		defer g.leave("")
		who, problem := g.identify(r)
		if problem == nil && !safe(r) && g.origin.Check(r) != nil {
			problem = NewProblem(http.StatusForbidden, CodeCrossOrigin, "a browser sent this write from a page of another site")
		}
		if problem != nil {
			g.refuse(w, r, problem)
			return
		}
		if !g.enter(who.Name) {
			w.Header().Set("Retry-After", "1")
			g.refuse(w, r, NewProblem(http.StatusTooManyRequests, CodeTooMany, "this caller has too many requests under way: let some of them end"))
			return
		}
		defer g.leave(who.Name)
		if !safe(r) {
			g.cfg.Logger.Info("a write over HTTP", "who", who.Name, "role", who.Role, "method", r.Method, "path", r.URL.EscapedPath())
		}
		r.Body = http.MaxBytesReader(w, r.Body, g.cfg.MaxBody)
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, who)))
	})
}

// Need lets only those to h whose role covers role.
func (g *Guard) Need(role Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := Of(r.Context()); !who.Role.Covers(role) {
			g.refuse(w, r, NewProblem(http.StatusForbidden, CodeForbidden, "this needs the role "+string(role)+": "+cmp.Or(who.Name, "nobody")+" has "+cmp.Or(string(who.Role), "none")))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// safe says that a request changes nothing.
func safe(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// policy lets a page load what its own server has, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// secure sets the security headers. A handler may set Cache-Control anew, for what is no secret.
func (g *Guard) secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if g.cfg.TLS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	if p.Status == http.StatusUnauthorized {
		// A browser asks for the token as a password; any user name will do.
		w.Header().Add("WWW-Authenticate", `Bearer realm="quipu"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="quipu: the token is the password", charset="UTF-8"`)
	}
	g.cfg.Logger.Warn("a request over HTTP was refused", "code", p.Code, "from", r.RemoteAddr, "method", r.Method, "path", r.URL.EscapedPath())
	p.Write(w)
}

// identify finds out who asks.
func (g *Guard) identify(r *http.Request) (Who, *Problem) {
	token, proxied := r.Header.Get("Authorization"), g.cfg.Proxy != nil && g.cfg.Proxy.sent(r)
	switch {
	case proxied && r.Header.Get(g.cfg.Proxy.Header) != "": // it may pass on what the caller showed to it
		return g.byProxy(r)
	case token != "":
		return g.byToken(r, token)
	case proxied:
		return g.byProxy(r)
	case g.cfg.Local == nil:
		return Who{}, NewProblem(http.StatusUnauthorized, CodeUnauthenticated, "say who you are: Authorization: Bearer TOKEN (`quipu token create` makes one)")
	case !loopback(r.Host):
		return Who{}, NewProblem(http.StatusMisdirectedRequest, CodeWrongHost, "without a token this server is asked as localhost, or by a loopback address")
	}
	return g.seeing(*g.cfg.Local), nil
}

// byToken takes the token of a Bearer, or the password of a Basic, authorization.
func (g *Guard) byToken(r *http.Request, header string) (Who, *Problem) {
	unknown := NewProblem(http.StatusUnauthorized, CodeUnauthenticated, "the token is none, was revoked, or has ended")
	scheme, token, _ := strings.Cut(header, " ")
	if _, password, basic := r.BasicAuth(); basic {
		scheme, token = "bearer", password
	}
	if _, form := Hash(token); !strings.EqualFold(scheme, "bearer") || !form || g.cfg.Tokens == nil {
		return Who{}, unknown
	}
	who, holds, err := g.cfg.Tokens(r.Context(), token)
	switch {
	case err != nil:
		g.cfg.Logger.Error("a token could not be looked up", "error", err)
		return Who{}, NewProblem(http.StatusServiceUnavailable, CodeUnavailable, "tokens cannot be looked up now: try again in a moment")
	case !holds:
		return Who{}, unknown
	}
	return g.seeing(who), nil
}

func (g *Guard) byProxy(r *http.Request) (Who, *Problem) {
	who := Who{Name: r.Header.Get(g.cfg.Proxy.Header), Role: Viewer}
	if h := g.cfg.Proxy.RoleHeader; h != "" && r.Header.Get(h) != "" {
		who.Role = Role(r.Header.Get(h))
	}
	if err := CheckName(who.Name); err != nil || !who.Role.Valid() {
		return Who{}, NewProblem(http.StatusUnauthorized, CodeUnauthenticated, "the proxy does not say who asks: it has to set "+g.cfg.Proxy.Header+", and a role that there is")
	}
	return g.seeing(who), nil
}

// seeing adds whether they see payloads.
func (g *Guard) seeing(who Who) Who {
	who.Payloads = who.Role.Covers(Client) || g.cfg.ViewersSeePayloads && who.Role.Covers(Viewer)
	return who
}

// sent says whether the request comes from the proxy.
func (p *Proxy) sent(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	for _, prefix := range p.From {
		if prefix.Contains(from.Addr().Unmap()) {
			return true
		}
	}
	return false
}

// loopback says whether a Host names this machine, whatever a name server says.
func loopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return strings.EqualFold(name, "localhost") || err == nil && ip.IsLoopback()
}

// enter takes a place for a caller, "" for one of all; false: there is none left.
func (g *Guard) enter(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case name == "" && g.all >= MaxRequests, name != "" && g.of[name] >= MaxOfOne:
		return false
	case name == "":
		g.all++
	default:
		g.of[name]++
	}
	return true
}

func (g *Guard) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == "" {
		g.all--
		return
	}
	if g.of[name]--; g.of[name] == 0 {
		delete(g.of, name)
	}
}
