package workers

import (
	"errors"

	"github.com/quipu-journal/quipu/internal/work/port"
)

// Builtins are the built-in handlers: the topics http, echo, sleep and fail (5.3).
// docs/handlers.md describes their inputs and outputs. The fields say what http may do
// (S14); the zero value is what RegisterBuiltins registers.
type Builtins struct {
	// HTTPDeny are host names, IP addresses and CIDRs that http does not call. It has
	// precedence over HTTPAllow. At most 1024.
	HTTPDeny []string
	// HTTPAllow, if it is not empty, is all that http calls: host names, IP addresses and
	// CIDRs, at most 1024. Link-local, metadata, multicast and unspecified addresses
	// are refused also then, unless an entry is such an address, or a CIDR within one of
	// these ranges: a host name or 0.0.0.0/0 does not open them.
	HTTPAllow []string
	// HTTPOwn, if set, returns the addresses, IP:PORT, of the process's own servers: console, API,
	// metrics, the servers of worker dev. http never calls them, whatever HTTPAllow says, by no
	// form of their address: they trust whoever is on this machine. It is asked at each
	// connection, and must be safe for concurrent use.
	HTTPOwn func() []string
	// Secrets looks up what ${secret:NAME} stands for, once in each call. It must be safe
	// for concurrent use, and its error must not hold the value. Default: there are no
	// secrets.
	Secrets func(name string) (Secret, error)
}

// Secret is what ${secret:NAME} stands for in a call of the built-in http (S14).
type Secret struct {
	// Value is text of 8 bytes to 8 KiB without control characters.
	Value string
	// Hosts are the places that it may be sent to: names or IP addresses, each with a scheme, a
	// port, both or neither: api.example, api.example:8443, https://api.example. What an entry
	// does not say, it does not limit; https://api.example is port 443. Whoever can choose a part
	// of a URL can write the name of a secret into it; so the secret itself says where it belongs.
	Hosts []string
}

// RegisterBuiltins registers Builtins{}, so that a worker process is useful without any Go
// code (5.3).
func RegisterBuiltins(r *Registry) { Builtins{}.Register(r) }

// Register adds the handlers to r. Registry.Check returns the entries of HTTPDeny and
// HTTPAllow that are no host, address or CIDR.
func (b Builtins) Register(r *Registry) {
	if port.RegisterBuiltins == nil {
		r.mistake("http", errors.New("the built-in handlers are part of package quipu, which this program does not have"))
	} else if err := port.RegisterBuiltins(r, b); err != nil {
		r.mistake("http", err)
	}
}
