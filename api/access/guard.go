package access

import (
	"cmp"
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a Guard and its Server.
const (
	DefaultMaxBody = 4 << 20   // bytes of a request's body
	MaxRequests    = 512       // at a time, waiting ones included
	MaxOfOne       = 128       // at a time, of one caller
	MaxBodies      = 128 << 20 // bytes of the bodies of all requests under way
	MaxLong        = 8         // at a time, of what reads whole journals: see Guard.Few
	MaxLongOfOne   = 4         // of those, of one caller
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
	// Refused is told the code of each request that is refused, for a counter; nil: nobody is. The
	// codes are those of Codes.
	Refused func(code string)
	// Logger gets a line about every write; of refusals of one code at most one line in ten seconds,
	// with how many there were. slog.Default() by default.
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
	cfg Config
	*Places
	long   *Places
	larger map[string]int64 // bytes of a body, by the path of what takes more than others
	bodies atomic.Int64     // bytes of bodies that may be read by requests under way
	said   sparse

	watching sync.Mutex
	watches  map[string]*watch // by token
}

// New makes a Guard.
func New(cfg Config) *Guard {
	cfg.MaxBody = cmp.Or(cfg.MaxBody, DefaultMaxBody)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Guard{
		cfg: cfg, Places: NewPlaces("requests", MaxRequests, MaxOfOne), long: NewPlaces("reads of whole journals", MaxLong, MaxLongOfOne),
		watches: map[string]*watch{}, larger: map[string]int64{},
	}
}

// Larger lets bodies of so many bytes to a path. It is called before the guard has a request.
func (g *Guard) Larger(path string, bytes int64) { g.larger[path] = bytes }

// Server returns a server with the limits of this package. Its address and TLS are the caller's.
// Of what net/http says of connections the logger gets at most one line in ten seconds.
func Server(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerWait, ReadTimeout: readWait, WriteTimeout: writeWait,
		IdleTimeout: idleWait, MaxHeaderBytes: MaxHeader,
		ErrorLog: log.New(&faults{log: logger}, "", 0),
	}
}

// Extend gives a response more time: d from now for what is written, and no bound for the
// connection's other side. A handler that waits or streams calls it before each pause.
func Extend(w http.ResponseWriter, d time.Duration) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // not every writer has deadlines
	_ = c.SetWriteDeadline(time.Now().Add(d))
}

// Steady writes a long answer to who goes on reading it: each part may take StallWait.
type Steady struct{ http.ResponseWriter }

// StallWait is how long who reads a long answer may stand still.
const StallWait = 30 * time.Second

// Write implements io.Writer.
func (s *Steady) Write(p []byte) (int, error) {
	Extend(s.ResponseWriter, StallWait)
	return s.ResponseWriter.Write(p)
}

// Wrap puts the guard before h. Every request has passed it when h sees it, and Of knows who asks.
// The context of a request that came with a token ends when the token does, at most TokenLook
// later, with a *Problem as its cause.
func (g *Guard) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.secure(w)
		if !g.enter("") {
			g.refuse(w, r, NewProblem(http.StatusServiceUnavailable, CodeBusy, "the server has too many requests under way: try again in a moment"))
			return
		}
		defer g.leave("")
		if crossSite(r) {
			g.refuse(w, r, NewProblem(http.StatusForbidden, CodeCrossOrigin, "a page of another site made a browser send this, and it is no link that somebody followed"))
			return
		}
		who, token, problem := g.identify(r)
		if problem != nil {
			g.refuse(w, r, problem)
			return
		}
		if !g.enter(who.Name) {
			g.refuse(w, r, NewProblem(http.StatusTooManyRequests, CodeTooMany, "this caller has too many requests under way: let some of them end"))
			return
		}
		defer g.leave(who.Name)
		size := g.bodyOf(r)
		defer g.bodies.Add(-size)
		if g.bodies.Add(size) > MaxBodies {
			g.refuse(w, r, NewProblem(http.StatusServiceUnavailable, CodeBusy, "the server has too many bytes of bodies under way: try again in a moment"))
			return
		}
		if !safe(r) {
			g.cfg.Logger.Info("a write over HTTP", "who", who.Name, "role", who.Role, "method", cut(r.Method), "path", cut(r.URL.EscapedPath()))
		}
		r.Body = http.MaxBytesReader(w, r.Body, g.maxBody(r))
		ctx, done := g.while(r, token, who)
		defer done()
		h.ServeHTTP(w, r.WithContext(context.WithValue(ctx, key{}, who)))
	})
}

// bodyOf is how many bytes of the body of a request may be read.
func (g *Guard) bodyOf(r *http.Request) int64 {
	most := g.maxBody(r)
	if r.ContentLength < 0 {
		return most
	}
	return min(r.ContentLength, most)
}

// maxBody bounds the body of a request, bytes.
func (g *Guard) maxBody(r *http.Request) int64 { return max(g.cfg.MaxBody, g.larger[r.URL.Path]) }

// Few lets few requests at a time to h: MaxLong of all, MaxLongOfOne of one caller. It is for what
// reads whole journals.
func (g *Guard) Few(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		giveBack, refused := g.long.Take(Of(r.Context()).Name)
		if refused != nil {
			g.refuse(w, r, refused)
			return
		}
		defer giveBack()
		h.ServeHTTP(w, r)
	})
}

// Need lets only those to h whose role covers role.
func (g *Guard) Need(role Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := Of(r.Context()); !who.Role.Covers(role) {
			g.refuse(w, r, NewProblem(http.StatusForbidden, CodeForbidden,
				"this needs the role "+string(role)+": "+cmp.Or(who.Name, "nobody")+" has "+cmp.Or(string(who.Role), "none")))
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

// refuse answers a request with a problem, counts it, and logs it now and then.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, p *Problem) {
	switch p.Status {
	case http.StatusUnauthorized:
		// A browser asks for the token as a password; any user name will do.
		w.Header().Add("WWW-Authenticate", `Bearer realm="quipu"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="quipu: the token is the password", charset="UTF-8"`)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	if g.cfg.Refused != nil {
		g.cfg.Refused(p.Code)
	}
	if since, say := g.said.count(p.Code); say {
		g.cfg.Logger.Warn("a request over HTTP was refused", "code", p.Code, "since_last", since, "from", cut(r.RemoteAddr), "method", cut(r.Method), "path", cut(r.URL.EscapedPath()))
	}
	p.Answer(w, r)
}

// identify finds out who asks, and by which token, "" for none.
func (g *Guard) identify(r *http.Request) (who Who, token string, problem *Problem) {
	if name := g.twice(r); name != "" {
		return who, "", NewProblem(http.StatusUnauthorized, CodeUnauthenticated, "the header "+name+" is given twice: who asks says so once")
	}
	header, proxied := r.Header.Get("Authorization"), g.cfg.Proxy != nil && g.cfg.Proxy.sent(r)
	switch {
	case proxied && (header == "" || r.Header.Get(g.cfg.Proxy.Header) != ""): // it may pass on what the caller showed to it
		who, problem = g.byProxy(r)
	case header != "":
		return g.byToken(r, header)
	case g.cfg.Local == nil:
		problem = NewProblem(http.StatusUnauthorized, CodeUnauthenticated, "say who you are: Authorization: Bearer TOKEN (`quipu token create` makes one)")
	case !loopback(r.Host):
		problem = NewProblem(http.StatusMisdirectedRequest, CodeWrongHost, "without a token this server is asked as localhost, or by a loopback address")
	default:
		who = g.seeing(*g.cfg.Local)
	}
	return who, "", problem
}

// twice names a header that says who asks and is given more than once, "" for none: which of them
// counts would be a guess.
func (g *Guard) twice(r *http.Request) string {
	names := []string{"Authorization"}
	if p := g.cfg.Proxy; p != nil && p.sent(r) {
		names = append(names, p.Header, p.RoleHeader)
	}
	for _, name := range names {
		if len(r.Header.Values(name)) > 1 {
			return name
		}
	}
	return ""
}

// byToken takes the token of a Bearer, or the password of a Basic, authorization.
func (g *Guard) byToken(r *http.Request, header string) (Who, string, *Problem) {
	scheme, token, _ := strings.Cut(header, " ")
	if _, password, basic := r.BasicAuth(); basic {
		scheme, token = "bearer", password
	}
	if _, form := Hash(token); !strings.EqualFold(scheme, "bearer") || !form || g.cfg.Tokens == nil {
		return Who{}, "", noToken()
	}
	// a caller that leaves is no fault of the database
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), tokenWait)
	defer cancel()
	who, holds, err := g.cfg.Tokens(ctx, token)
	switch {
	case err != nil:
		if since, say := g.said.count(tokenFault); say {
			g.cfg.Logger.Error("a token could not be looked up", "since_last", since, "error", err)
		}
		return Who{}, "", NewProblem(http.StatusServiceUnavailable, CodeUnavailable, awayDetail)
	case !holds:
		return Who{}, "", noToken()
	}
	return g.seeing(who), token, nil
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
