package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/transport"
)

// Registry holds handlers by topic. It is safe for concurrent use; a handler that is
// registered after quipu.Open is not served.
type Registry struct {
	mu        sync.Mutex
	handlers  map[string]*handler
	verifiers map[string]port.Verifier // by the effect's name
	uses      []func(next Handler) Handler
	errs      []error
}

// handler is one registered topic.
type handler struct {
	topic       string
	class       effects.Class
	concurrency int // 0: the runtime's
	durable     bool
	early       bool
	fn          Handler
	takes       func(input json.RawMessage) error // refuses what does not fit its type; nil: it has none
}

// New returns an empty registry.
func New() *Registry {
	return &Registry{handlers: make(map[string]*handler), verifiers: make(map[string]port.Verifier)}
}

// Topics lists the registered topics, sorted.
func (r *Registry) Topics() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	topics := make([]string, 0, len(r.handlers))
	for topic := range r.handlers {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	return topics
}

// Option changes how a topic is handled.
type Option func(*handler) error

// Class makes the body of the handler one effect of that class, named after its topic
// (E3). Without it the body is Pure: it runs again after a crash, and names its own
// effects.
func Class(c effects.Class) Option {
	return func(h *handler) error {
		if c == effects.Tx {
			return errors.New("class tx needs a transaction: use quipu.DoTx, or quipu.HandleTx")
		}
		if !c.Valid() {
			return fmt.Errorf("class %.40q is none of pure, idempotent, guarded", string(c))
		}
		h.class = c
		return nil
	}
}

// Concurrency bounds the requests of this topic that the process handles at a
// time, 1 to 10000. Default: quipu.Config.Concurrency.
func Concurrency(n int) Option {
	return func(h *handler) error {
		if n < 1 || n > transport.MaxSlots {
			return fmt.Errorf("concurrency %d: 1 to %d is allowed", n, transport.MaxSlots)
		}
		h.concurrency = n
		return nil
	}
}

// Early says that a run of the handler may begin before its cause has committed (L4): before the
// journal has what led to it. The handler promises that its body does nothing outside except by
// effects, because it may run for an input that is never recorded. Its effects wait for the
// commit, and its answer is recorded together with its cause or after it.
//
// A handler that only reads and computes, and answers within about 100 µs, then costs no commit of
// its own: a price, a rule, a lookup in memory. One with effects begins while its cause commits. If
// the cause does not commit, the context of the run ends with ErrUncommitted, and what the run
// brought is dropped. A durable function is early in its first turn only.
func Early() Option {
	return func(h *handler) error {
		h.early = true
		return nil
	}
}

// Handle registers fn for a topic; input and output travel as JSON. An input that does
// not fit into In is a business error 400 and never reaches fn. Registry.Check returns
// all mistakes: a bad topic, a topic registered twice, a bad option, no function, a
// type of input or output that JSON cannot hold.
func Handle[In, Out any](r *Registry, topic string, fn func(context.Context, In) (Out, error), options ...Option) {
	takes := func(h *handler) error {
		before := h.takes // of an option
		h.takes = func(input json.RawMessage) error {
			if before != nil {
				if err := before(input); err != nil {
					return err
				}
			}
			_, err := read[In](topic, input)
			return err
		}
		return nil
	}
	options = append(options[:len(options):len(options)], given(fn != nil), travel[In, Out](), takes)
	HandleRaw(r, topic, func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		in, err := read[In](topic, input)
		if err != nil {
			return nil, err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return nil, invalidResult(topic, err)
		}
		return raw, nil
	}, options...)
}

// read reads the input of a request as the type of its handler.
func read[In any](topic string, input json.RawMessage) (in In, err error) {
	if len(input) == 0 {
		return in, nil
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return in, &Error{Code: http.StatusBadRequest, Class: wire.ClassInput, Message: fmt.Sprintf("the input of %s does not fit into %T: %v", topic, in, err)}
	}
	return in, nil
}

// HandleRaw registers fn for a topic. fn gets the input as it is and returns JSON; nil
// stands for null.
func HandleRaw(
	r *Registry, topic string, fn func(context.Context, json.RawMessage) (json.RawMessage, error), options ...Option,
) {
	h := &handler{topic: topic, class: effects.Pure, fn: fn}
	options = append(options[:len(options):len(options)], given(fn != nil))
	var errs []error
	if err := transport.ValidateTopic(topic); err != nil {
		errs = append(errs, err)
	}
	for _, o := range options {
		if o == nil {
			errs = append(errs, errors.New("one of its options is nil"))
			continue
		}
		errs = append(errs, o(h))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handlers[topic] != nil {
		errs = append(errs, errors.New("it is registered twice"))
	}
	if err := errors.Join(errs...); err != nil {
		r.errs = append(r.errs, ofTopic(topic, err))
		return
	}
	r.handlers[topic] = h
}

// mistake keeps an error for Check.
func (r *Registry) mistake(topic string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, ofTopic(topic, err))
}

func ofTopic(topic string, err error) error {
	return fmt.Errorf("handler of topic %.80q: %w", topic, err)
}

// given refuses a handler without a function.
func given(is bool) Option {
	return func(*handler) error {
		if !is {
			return errors.New("its function is nil")
		}
		return nil
	}
}

// Check returns all mistakes in the registered handlers; Open calls it.
func (r *Registry) Check() error {
	_, _, err := r.all()
	return err
}

// init lets the runtime read what a registry holds.
func init() {
	port.Registered = func(registry any) ([]*port.Handler, map[string]port.Verifier, error) {
		return registry.(*Registry).all()
	}
}

// all returns the handlers in the order of their topics, and the verifiers; or every mistake.
func (r *Registry) all() ([]*port.Handler, map[string]port.Verifier, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hs := make([]*port.Handler, 0, len(r.handlers))
	for _, h := range r.handlers {
		hs = append(hs, &port.Handler{
			Topic: h.topic, Class: h.class, Concurrency: h.concurrency, Durable: h.durable, Early: h.early,
			Takes: h.takes, Call: h.call(r.uses),
		})
	}
	slices.SortFunc(hs, func(a, b *port.Handler) int { return strings.Compare(a.Topic, b.Topic) })
	return hs, maps.Clone(r.verifiers), errors.Join(r.errs...)
}

// call is the body, as one effect unless it is Pure (E3), with the middleware around it.
func (h *handler) call(uses []func(next Handler) Handler) Handler {
	call := h.fn
	if h.class != effects.Pure {
		call = func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			return effects.Do(ctx, h.topic, func(ctx context.Context) (json.RawMessage, error) {
				return h.fn(ctx, input)
			}, h.class)
		}
	}
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		body := call
		for _, use := range slices.Backward(uses) {
			body = use(body)
		}
		return body(ctx, input)
	}
}
