package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Builtins are the built-in handlers: the topics http, echo, sleep and fail (5.3).
// docs/handlers.md describes their inputs and outputs. The fields say what http may do
// (S14); the zero value is what RegisterBuiltins registers.
type Builtins struct {
	// HTTPDeny are host names, IP addresses and CIDRs that http does not call. It has
	// precedence over HTTPAllow. At most MaxHTTPRules.
	HTTPDeny []string
	// HTTPAllow, if it is not empty, is all that http calls: host names, IP addresses and
	// CIDRs, at most MaxHTTPRules. Link-local, metadata, multicast and unspecified addresses
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

// RegisterBuiltins registers Builtins{}, so that a worker process is useful without any Go
// code (5.3).
func RegisterBuiltins(r *Registry) { Builtins{}.Register(r) }

// Register adds the handlers to r. Registry.Check returns the entries of HTTPDeny and
// HTTPAllow that are no host, address or CIDR.
func (b Builtins) Register(r *Registry) {
	reach, err := newReach(b.HTTPAllow, b.HTTPDeny)
	if err != nil {
		r.mistake("http", err)
	}
	reach.own = b.HTTPOwn
	b.register(r, newHTTPTransport(reach))
}

func (b Builtins) register(r *Registry, outside http.RoundTripper) {
	client := &httpClient{client: http.Client{Transport: outside}, secrets: b.Secrets}
	HandleRaw(r, "echo", echo)
	HandleRaw(r, "sleep", sleep)
	HandleRaw(r, "fail", fail)
	Handle(r, "http", client.handle, exactly(checkMembers))
}

func echo(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }

// sleep waits for the duration in "for", then returns its input. It holds its slot
// meanwhile; long waits belong in the flow.
func sleep(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
	var ask struct {
		For string `json:"for"`
	}
	if err := json.Unmarshal(in, &ask); err != nil {
		return nil, badInput("sleep", err)
	}
	d, err := time.ParseDuration(ask.For)
	if err != nil || d < 0 {
		return nil, badInput("sleep", fmt.Errorf("for: %.40q is no duration like 1.5s", ask.For))
	}
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	return in, nil
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fail ends with the code and message of its input. With "times" set it fails only on the
// first so many attempts; later ones return the input.
func fail(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
	ask := struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Times   int             `json:"times"`
		Data    json.RawMessage `json:"data"`
	}{Code: http.StatusInternalServerError, Message: "failed on request"}
	if err := json.Unmarshal(in, &ask); err != nil {
		return nil, badInput("fail", err)
	}
	if ask.Times > 0 && Info(ctx).Attempt > ask.Times {
		return in, nil
	}
	if ask.Data != nil {
		return nil, Fail(ask.Code, ask.Message, Data(ask.Data))
	}
	return nil, Fail(ask.Code, ask.Message)
}

func badInput(topic string, err error) error {
	return &Error{Code: codeBadInput, Class: ClassInput, Message: fmt.Sprintf("the input of %s is not what it takes: %v", topic, err)}
}
