package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/transport"
)

// Registry holds handlers by topic. It is safe for concurrent use; a handler that is
// registered after NewRuntime is not served.
type Registry struct {
	mu        sync.Mutex
	handlers  map[string]*handler
	verifiers map[string]verifier // by the effect's name
	uses      []func(next Handler) Handler
	errs      []error
}

// handler is one registered topic.
type handler struct {
	topic       string
	class       effects.Class
	concurrency int // 0: the runtime's
	durable     bool
	fn          Handler
	takes       func(input json.RawMessage) error // refuses what does not fit its type; nil: it has none
	uses        []func(next Handler) Handler      // of the registry; filled in by all
}

// New returns an empty registry.
func New() *Registry {
	return &Registry{handlers: make(map[string]*handler), verifiers: make(map[string]verifier)}
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
// time, 1 to transport.MaxSlots. Default: Config.Concurrency.
func Concurrency(n int) Option {
	return func(h *handler) error {
		if n < 1 || n > transport.MaxSlots {
			return fmt.Errorf("concurrency %d: 1 to %d is allowed", n, transport.MaxSlots)
		}
		h.concurrency = n
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
		return in, &Error{Code: codeBadInput, Class: ClassInput, Message: fmt.Sprintf("the input of %s does not fit into %T: %v", topic, in, err)}
	}
	return in, nil
}

// HandleRaw registers fn for a topic. fn gets the input as it is and returns JSON; nil
// stands for null.
func HandleRaw(r *Registry, topic string, fn func(context.Context, json.RawMessage) (json.RawMessage, error), options ...Option) {
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
	_, err := r.all()
	return err
}

// all returns the handlers in the order of their topics, or every mistake.
func (r *Registry) all() ([]*handler, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hs := make([]*handler, 0, len(r.handlers))
	for _, h := range r.handlers {
		complete := *h
		complete.uses = slices.Clone(r.uses)
		hs = append(hs, &complete)
	}
	slices.SortFunc(hs, func(a, b *handler) int { return strings.Compare(a.topic, b.topic) })
	return hs, errors.Join(r.errs...)
}

// of returns the handler of a topic.
func (r *Registry) of(topic string) (*handler, error) {
	all, err := r.all()
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.topic == topic {
			return h, nil
		}
	}
	return nil, fmt.Errorf("topic %.80q has no handler in the registry", topic)
}

func (r *Registry) verified() map[string]verifier {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.verifiers)
}

// invoke runs the body, as one effect unless it is Pure (E3).
func (h *handler) invoke(ctx context.Context, input []byte) ([]byte, error) {
	if h.class == effects.Pure {
		return h.wrapped(h.fn)(ctx, input)
	}
	return h.wrapped(func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		return effects.Do(ctx, h.topic, func(ctx context.Context) (json.RawMessage, error) { return h.fn(ctx, input) }, h.class)
	})(ctx, input)
}
