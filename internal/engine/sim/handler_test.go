package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/workers"
)

// Topics of the workers: the body is pure, or consists of one effect.
const (
	topicWork       = "work"
	topicIdempotent = "idempotent"
	topicGuarded    = "guarded"
)

var topics = []string{topicDurable, topicGuarded, topicIdempotent, topicWork}

// order is the input of a handler: what it should do.
type order struct {
	N       int      `json:"n"`
	Fail    int      `json:"fail"` // how many attempts fail
	How     string   `json:"how"`
	Effects []effect `json:"effects"`
	Strides []stride `json:"strides"` // of a durable function
	Big     int      `json:"big"`     // bytes of the output
}

// effect is one effect of a handler.
type effect struct {
	Name  string        `json:"name"`
	Class effects.Class `json:"class"`
	How   string        `json:"how"` // "", slow, refused, or notdone: the first key is not applied
}

// receiver is the outside: it counts requests by key.
type receiver struct {
	rmu     sync.Mutex
	keys    map[string]*received
	refused map[string]int              // outcomes "not done", by request and effect
	cut     map[string]bool             // keys whose call outlasted its attempt, see watched
	asked   map[string]int              // questions of verifiers, by key
	flights map[string]map[*flight]bool // calls that have not arrived, by key
}

// received is what the outside knows of one key.
type received struct {
	request   string
	name      string
	class     effects.Class
	requested int
	applied   int
	notDone   bool
}

func (r *receiver) init() {
	r.keys, r.refused, r.cut = map[string]*received{}, map[string]int{}, map[string]bool{}
	r.asked, r.flights = map[string]int{}, map[string]map[*flight]bool{}
}

// receive is one request to the outside. wrong says that it should not have come.
func (r *receiver) receive(key, request string, e *effect) (notDone bool, wrong string) {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	k := r.keys[key]
	if k == nil {
		k = &received{request: request, name: e.Name, class: e.Class}
		r.keys[key] = k
		if place := request + e.Name; e.How == "notdone" && r.refused[place] == 0 {
			r.refused[place]++
			k.notDone = true
		}
	}
	k.requested++
	if k.request != request {
		wrong = fmt.Sprintf("E1: key %s of effect %s went outside for request %s, and for request %s", key, e.Name, k.request, request)
	}
	if k.class == effects.Guarded && k.requested > 1 {
		wrong = fmt.Sprintf("E4: the guarded effect %s of request %s was called %d times with key %s", e.Name, request, k.requested, key)
	}
	if !k.notDone && (k.applied == 0 || k.class != effects.Idempotent) {
		k.applied++
	}
	return k.notDone, wrong
}

func (p *process) registry() *workers.Registry {
	reg := workers.New()
	options := []workers.Option{workers.Concurrency(p.role.slots)}
	if p.role.early {
		options = append(options, workers.Early())
	}
	workers.HandleRaw(reg, topicWork, p.handle, options...)
	workers.HandleDurable(reg, topicDurable, p.function, options...)
	body := func(class effects.Class) func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return func(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
			return p.outside(ctx, &effect{Name: "body", Class: class})
		}
	}
	workers.HandleRaw(reg, topicIdempotent, body(effects.Idempotent),
		append(options, workers.Class(effects.Idempotent))...)
	workers.HandleRaw(reg, topicGuarded, body(effects.Guarded), append(options, workers.Class(effects.Guarded))...)
	p.verifiers(reg)
	return reg
}

// handle does what its input says.
func (p *process) handle(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	var in order
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, workers.Fatal(err)
	}
	call := workers.Info(ctx)
	if v := p.world.gate.pass(ctx, p, kindBody, "body "+call.Request+fmt.Sprint(" ", call.Turn)); v.err != nil {
		return nil, v.err
	}
	for i := range in.Effects {
		e := &in.Effects[i]
		err := p.effect(ctx, e)
		var refused *effects.RecordedError
		if err != nil && !errors.As(err, &refused) {
			return nil, err
		}
	}
	if call.Attempt <= in.Fail {
		switch in.How {
		case "retry":
			return nil, workers.RetryAfter(50*time.Millisecond, errors.New("as told"))
		case "panic":
			panic("as told")
		case "fatal":
			return nil, workers.Fatal(workers.Fail(422, "as told"))
		case "hang":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, errors.New(strings.Repeat("as told ", verbose[in.How]))
	}
	return fmt.Appendf(nil, `{"n":%d%s}`, in.N, padding(in.Big)), nil
}

// verbose is how often an error repeats its text: once, or beyond the limit of a message.
var verbose = map[string]int{"error": 1, "verbose": smallest}

func padding(bytes int) string {
	if bytes == 0 {
		return ""
	}
	return `,"pad":"` + strings.Repeat("o", bytes) + `"`
}

// effect is one effect of a handler.
func (p *process) effect(ctx context.Context, e *effect) (err error) {
	if e.Class == effects.Tx {
		_, err = effects.DoTx(ctx, e.Name, func(ctx context.Context, tx any) (json.RawMessage, error) {
			return p.transfer(ctx, e, tx.(*memstore.EffectTx))
		})
		return err
	}
	_, err = effects.Do(ctx, e.Name, func(ctx context.Context) (json.RawMessage, error) {
		return p.outside(ctx, e)
	}, e.Class)
	return err
}

// outside is a call outside. Its result names its key.
func (p *process) outside(ctx context.Context, e *effect) (json.RawMessage, error) {
	w := p.world
	key, request := effects.Key(ctx), workers.Info(ctx).Request
	land := w.receiver.fly(p, key, request)
	defer w.watched(ctx, key)()
	if e.How == "slow" { // longer than ack wait and lease
		w.pause(ackWait + lease)
	}
	v := w.gate.pass(ctx, p, kindOutside, "outside "+e.Name+" "+key[:min(len(key), 12)]+" "+request)
	notDone := false
	if v.do {
		var wrong string
		if notDone, wrong = w.receiver.receive(key, w.placeOf(ctx), e); wrong != "" {
			w.wrong("%s", wrong)
		}
	}
	land()
	switch {
	case p.gone():
		return nil, p.park()
	case v.err != nil:
		return nil, v.err
	case notDone:
		return nil, effects.NotDone(errors.New("as told"))
	case e.How == "refused":
		return nil, workers.Fail(402, "as told")
	}
	return resultOf(key), nil
}

func resultOf(key string) json.RawMessage { return fmt.Appendf(nil, `{"key":%q}`, key) }
