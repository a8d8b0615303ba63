package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/console"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Site is what a server shows of a space.
type Site struct {
	Build, Space, Trace string // as in console.Config
	Access              access.Config
	Logger              *slog.Logger
}

// Handler puts the console and the API behind one guard (O6, O10, O11). Tokens are those of the
// space.
func (s Site) Handler(rt *quipu.Runtime) http.Handler {
	s.Access.Tokens, s.Access.Logger = rt.Tokens().Who, s.Logger
	count := func(code string, n int64) { below.Observer(rt).Count(observer.MetricTurnedAway, n, "code", code) }
	s.Access.Refused = func(code string) { count(code, 1) }
	for _, code := range access.Codes() {
		count(code, 0)
	}
	guard := access.New(s.Access)
	mux := http.NewServeMux()
	mux.Handle(api.Path+"/", api.New(rt, api.Config{Guard: guard, Build: s.Build, Logger: s.Logger}))
	mux.Handle("/",
		console.New(rt, console.Config{Guard: guard, Build: s.Build, Space: s.Space, Trace: s.Trace, Logger: s.Logger}))
	return guard.Wrap(mux)
}

// Flags say where a server listens, and who may ask it.
type Flags struct {
	Addr                          string
	cert, key                     string
	proxyFrom                     []string
	proxyHeader, proxyRole        string
	viewersSeePayloads, everybody bool
}

// Define adds the flags.
func (f *Flags) Define(set *pflag.FlagSet) {
	set.StringVar(&f.Addr, "http", "127.0.0.1:8400", "`ADDRESS` to listen on; port 0 is any free one. Beyond loopback everybody has to say who they are")
	set.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate of the server, in PEM; default: no TLS")
	set.StringVar(&f.key, "tls-key", "", "`FILE` with its private key")
	set.StringSliceVar(&f.proxyFrom, "proxy-from", nil, "address `RANGE` of a proxy that knows who asks, such as 10.1.0.0/16; several with commas")
	set.StringVar(&f.proxyHeader, "proxy-header", "", "`HEADER` in which the proxy names who asks; it has to replace what callers send")
	set.StringVar(&f.proxyRole, "proxy-role-header", "", "`HEADER` in which it gives their role; default: all are viewers")
	set.BoolVar(&f.viewersSeePayloads, "viewers-see-payloads", false, "show inputs, outputs and data of errors to viewers, too")
	set.BoolVar(&f.everybody, "tokens", false, "ask for a token on loopback, too")
}

// ErrFlags is wrapped by the errors about flags.
var ErrFlags = errors.New("the flags do not fit")

// Access checks the flags, and returns who may ask. user is who everybody is on a loopback address.
func (f *Flags) Access(user string) (access.Config, error) {
	cfg := access.Config{TLS: f.cert != "", ViewersSeePayloads: f.viewersSeePayloads}
	refused := func(format string, a ...any) (access.Config, error) {
		return cfg, fmt.Errorf("%w: %w", ErrFlags, fmt.Errorf(format, a...))
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return refused("--tls-cert and --tls-key belong together")
	case (len(f.proxyFrom) == 0) != (f.proxyHeader == ""):
		return refused("--proxy-from and --proxy-header belong together")
	case f.proxyRole != "" && f.proxyHeader == "":
		return refused("--proxy-role-header needs --proxy-header")
	}
	host, _, err := net.SplitHostPort(f.Addr)
	if err != nil {
		return refused("--http %.80q: use an address such as 127.0.0.1:8400", f.Addr)
	}
	if len(f.proxyFrom) > 0 {
		cfg.Proxy = &access.Proxy{Header: f.proxyHeader, RoleHeader: f.proxyRole}
		for _, text := range f.proxyFrom {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				return refused("--proxy-from %.80q: use a range such as 10.1.0.0/16", text)
			}
			cfg.Proxy.From = append(cfg.Proxy.From, p.Masked())
		}
	}
	if Loopback(host) && cfg.Proxy == nil && !f.everybody {
		cfg.Local = &access.Who{Name: user, Role: access.Operator}
	}
	return cfg, nil
}

// InClear says that tokens would cross a network in clear, unless a proxy before the server speaks
// TLS.
func (f *Flags) InClear() bool {
	host, _, _ := net.SplitHostPort(f.Addr)
	return f.cert == "" && !Loopback(host)
}

// TLS reads the certificate; nil for a server without TLS.
func (f *Flags) TLS() (*tls.Config, error) {
	if f.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("%w: --tls-cert, --tls-key: %w", ErrFlags, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// Loopback says whether only this machine reaches the host of an address.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
