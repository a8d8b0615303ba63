//go:build chaos

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, fnHandlers) }

// span is a duration in milliseconds, as the scenes' inputs have it.
type span int

func (s span) d() time.Duration { return time.Duration(s) * time.Millisecond }

// outsider calls the receiver as effects of functions.
type outsider struct{ url string }

// apply applies what outside, as an Idempotent effect. A refusal is an error, so
// that the call is repeated.
func (o outsider) apply(ctx context.Context, name, what string) error {
	_, err := effects.Do(ctx, name, func(ctx context.Context) (map[string]string, error) {
		return o.post(ctx, what)
	}, effects.Idempotent, effects.WithKey(what))
	return err
}

func (o outsider) post(ctx context.Context, what string) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+"/?what="+url.QueryEscape(what), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Idempotency-Key", effects.Key(ctx))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", what, resp.Status)
	}
	out := map[string]string{}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// books asks the receiver whether a key was applied; it never is from then on.
func (o outsider) books(ctx context.Context, q effects.Question) (a effects.Answer, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url+"/books?key="+url.QueryEscape(q.Key), nil)
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	return a, json.NewDecoder(resp.Body).Decode(&a)
}

// fnHandlers register the durable functions of the scenes.
func fnHandlers(reg *workers.Registry, receiver string) {
	o := outsider{receiver}
	workers.HandleDurable(reg, "f_naps", o.naps)
	workers.HandleDurable(reg, "f_asks", o.asks)
	workers.HandleDurable(reg, "f_kids", o.kids)
	workers.HandleDurable(reg, "f_first", o.first)
	workers.HandleDurable(reg, "f_saga", o.saga)
	workers.HandleDurable(reg, "f_bank", o.bank)
	workers.HandleDurable(reg, "f_proof", o.proof)
	workers.HandleDurable(reg, "f_new", o.changed)
	workers.HandleDurable(reg, "f_tx", o.tx)
	workers.HandleDurable(reg, "f_wait", o.waits)
	workers.Verify(reg, "proved", effects.VerifierFunc(o.books), effects.Strict)
}

type nap struct {
	ID   string `json:"id"`
	Naps []span `json:"naps"`
	Fail string `json:"fail"`
}

// naps sleeps over and over and calls outside between. A number that it was given
// is part of each key: another number would be another path (E15).
func (o outsider) naps(ctx context.Context, in nap) (map[string]any, error) {
	id, err := workers.UUID(ctx)
	if err != nil {
		return nil, err
	}
	for i, d := range in.Naps {
		before, err := workers.Now(ctx)
		if err != nil {
			return nil, err
		}
		if err := workers.Sleep(ctx, fmt.Sprint("nap-", i, "-", id), d.d()); err != nil {
			return nil, err
		}
		after, err := workers.Now(ctx)
		if err != nil {
			return nil, err
		}
		if slept := after.Sub(before); slept < d.d() {
			return nil, workers.Fatal(fmt.Errorf("slept %s of %s", slept, d.d()))
		}
		if err := o.apply(ctx, "tick", fmt.Sprintf("tick %s/%d", in.ID, i)); err != nil {
			return nil, err
		}
	}
	if in.Fail != "" {
		return nil, workers.Fail(422, in.Fail)
	}
	return map[string]any{"naps": len(in.Naps)}, nil
}

type asking struct {
	ID     string `json:"id"`
	Bounds []span `json:"bounds"` // 0: none
}

// asks awaits one signal after the other, each with a bound, and says how each
// wait ended.
func (o outsider) asks(ctx context.Context, in asking) ([]string, error) {
	out := make([]string, len(in.Bounds))
	for i, bound := range in.Bounds {
		got, err := workers.Await[string](ctx, "answers", bound.d(), workers.SignalKey(in.ID), workers.As(fmt.Sprint("answer-", i)))
		refused := (*workers.SignalError)(nil)
		switch {
		case errors.Is(err, workers.ErrAwaitTimeout):
			got = "timeout"
		case errors.As(err, &refused):
			got = fmt.Sprintf("%d %s", refused.Code, refused.Payload)
		case err != nil:
			return nil, err
		}
		out[i] = got
		if err := o.apply(ctx, "tick", fmt.Sprintf("tick %s/%d", in.ID, i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type kidding struct {
	ID    string `json:"id"`
	Nap   span   `json:"nap"`   // of the child that is late
	Bound span   `json:"bound"` // for it
	Taken string `json:"taken"` // a key that another job has
}

type kidOut struct {
	N   int    `json:"n"`
	Key string `json:"key"`
}

// kids starts children side by side: that complete, fail, cannot begin, and are
// perhaps late. Every branch calls outside before and after.
func (o outsider) kids(ctx context.Context, in kidding) (map[string]any, error) {
	kid := func(name, flow string, input map[string]any, opts ...workers.ChildOption) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			if err := o.apply(ctx, "before", fmt.Sprintf("tick %s/before %s", in.ID, name)); err != nil {
				return "", err
			}
			out, err := workers.Child[kidOut](ctx, name, flow, input, opts...)
			said := fmt.Sprint(out.N)
			if failed := (*workers.ChildError)(nil); errors.As(err, &failed) {
				said, err = fmt.Sprint(failed.Code), nil
			}
			if err != nil {
				return "", err
			}
			return said, o.apply(ctx, "after", fmt.Sprintf("tick %s/after %s", in.ID, name))
		}
	}
	all, err := workers.All(ctx,
		kid("ok", "kid", map[string]any{"n": 5}, workers.ChildKey(in.ID+".ok")),
		kid("bad", "kid", map[string]any{"n": -5}),
		kid("none", "nowhere", nil),
		kid("refused", "kid", map[string]any{"n": "text"}),
		kid("taken", "kid", map[string]any{"n": 9}, workers.ChildKey(in.Taken)),
	)
	if err != nil {
		return nil, err
	}
	who, late, err := workers.First(ctx,
		func(ctx context.Context) (int, error) {
			out, err := workers.Child[kidOut](ctx, "late", "kid", map[string]any{"n": 8, "nap": ms(in.Nap.d())})
			return out.N, err
		},
		func(ctx context.Context) (int, error) { return -1, workers.Sleep(ctx, "patience", in.Bound.d()) },
	)
	return map[string]any{"all": all, "who": who, "late": late}, err
}

type racing struct {
	ID    string `json:"id"`
	Sleep span   `json:"sleep"`
	Nap   span   `json:"nap"` // of the child
}

// first races a sleep, a signal, a child, and a pair of both; each calls outside
// when its pause is over, and all go on after it.
func (o outsider) first(ctx context.Context, in racing) (map[string]any, error) {
	ran := func(ctx context.Context, i int, err error) (int, error) {
		if err == nil {
			err = o.apply(ctx, "ran", fmt.Sprintf("tick %s/ran %d", in.ID, i))
		}
		return i, err
	}
	who, value, err := workers.First(ctx,
		func(ctx context.Context) (int, error) { return ran(ctx, 0, workers.Sleep(ctx, "s", in.Sleep.d())) },
		func(ctx context.Context) (int, error) {
			_, err := workers.Await[string](ctx, "raced-first", 0, workers.SignalKey(in.ID))
			return ran(ctx, 1, err)
		},
		func(ctx context.Context) (int, error) {
			_, err := workers.Child[kidOut](ctx, "c", "kid", map[string]any{"n": 3, "nap": ms(in.Nap.d())})
			return ran(ctx, 2, err)
		},
		func(ctx context.Context) (int, error) {
			_, err := workers.All(ctx,
				func(ctx context.Context) (int, error) { return 0, workers.Sleep(ctx, "half", in.Sleep.d()/2) },
				func(ctx context.Context) (int, error) { return 0, o.apply(ctx, "pair", "tick "+in.ID+"/pair") },
			)
			if err == nil {
				err = workers.Sleep(ctx, "rest", in.Sleep.d()/2)
			}
			return ran(ctx, 3, err)
		},
	)
	if err != nil {
		return nil, err
	}
	if err := o.apply(ctx, "won", fmt.Sprintf("tick %s/won %d", in.ID, who)); err != nil {
		return nil, err
	}
	if err := workers.Sleep(ctx, "after", in.Sleep.d()/4); err != nil {
		return nil, err
	}
	return map[string]any{"who": who, "value": value}, o.apply(ctx, "end", "tick "+in.ID+"/end")
}

type trip struct {
	ID    string   `json:"id"`
	Parts []string `json:"parts"`
	Rest  span     `json:"rest"` // between two bookings
}

// saga books the parts, each with its undo, and fails unless it is paid.
func (o outsider) saga(ctx context.Context, in trip) (string, error) {
	book := func(ctx context.Context, part string) error {
		err := workers.Compensate(ctx, part, func(ctx context.Context) error {
			_, err := o.post(ctx, "cancel "+part+" "+in.ID)
			return err
		})
		if err != nil {
			return err
		}
		return o.apply(ctx, "book", "book "+part+" "+in.ID)
	}
	for i, part := range in.Parts {
		if i == 1 { // two at once
			_, err := workers.All(ctx,
				func(ctx context.Context) (int, error) { return 0, book(ctx, part+"-a") },
				func(ctx context.Context) (int, error) { return 0, book(ctx, part+"-b") },
			)
			if err != nil {
				return "", err
			}
		} else if err := book(ctx, part); err != nil {
			return "", err
		}
		if err := workers.Sleep(ctx, "rest "+part, in.Rest.d()); err != nil {
			return "", err
		}
	}
	paid, err := workers.Await[bool](ctx, "saga-paid", 0)
	if err == nil && !paid {
		err = workers.Fail(402, "not paid")
	}
	return in.ID, err
}

// bank moves money in Tx effects, with sleeps between and two moves at once.
func (o outsider) bank(ctx context.Context, in struct {
	Moves []move `json:"moves"`
	Nap   span   `json:"nap"`
},
) (int, error) {
	one := func(ctx context.Context, m move) (int, error) {
		ok, err := quipu.DoTx(ctx, "move", func(ctx context.Context, tx quipu.EffectTx) (bool, error) {
			return transfer(ctx, tx, m)
		}, effects.WithKey(m.ID))
		if err != nil || !ok {
			return 0, err
		}
		return 1, nil
	}
	done := 0
	for i := 0; i+1 < len(in.Moves); i += 2 {
		both, err := workers.All(ctx,
			func(ctx context.Context) (int, error) { return one(ctx, in.Moves[i]) },
			func(ctx context.Context) (int, error) {
				if err := workers.Sleep(ctx, fmt.Sprint("before-", i), in.Nap.d()); err != nil {
					return 0, err
				}
				return one(ctx, in.Moves[i+1])
			},
		)
		if err != nil {
			return 0, err
		}
		done += both[0] + both[1]
	}
	return done, nil
}

// proof calls outside once, Guarded, with a verifier that asks the books.
func (o outsider) proof(ctx context.Context, in nap) (string, error) {
	for i, d := range in.Naps {
		_, err := effects.Do(ctx, "proved", func(ctx context.Context) (map[string]string, error) {
			return o.post(ctx, fmt.Sprintf("proved %s/%d", in.ID, i))
		}, effects.WithKey(fmt.Sprint(i)))
		if err == nil {
			err = workers.Sleep(ctx, fmt.Sprint("nap-", i), d.d())
		}
		if err != nil {
			return "", err
		}
	}
	return in.ID, nil
}

// changed is code that is changed after its first turn: what came by the old code
// keeps its path, and what did not takes the new one.
func (o outsider) changed(ctx context.Context, in nap) (map[string]int, error) {
	v := 0
	if workers.Info(ctx).Turn > 1 {
		var err error
		if v, err = workers.Version(ctx, "way", 1); err != nil {
			return nil, err
		}
	}
	if err := o.apply(ctx, "way", fmt.Sprintf("tick %s/way %d", in.ID, v)); err != nil {
		return nil, err
	}
	for i, d := range in.Naps {
		if err := workers.Sleep(ctx, fmt.Sprint("nap-", i), d.d()); err != nil {
			return nil, err
		}
	}
	late, err := workers.Version(ctx, "end", 2)
	if err != nil {
		return nil, err
	}
	return map[string]int{"way": v, "end": late}, o.apply(ctx, "end", fmt.Sprintf("tick %s/end %d", in.ID, late))
}

// tx starts a job under a key that no other run of the body has, and waits for
// its signal; then it signals a job itself.
func (o outsider) tx(ctx context.Context, in nap) (map[string]string, error) {
	key, err := quipu.DoTx(ctx, "start", func(ctx context.Context, tx quipu.EffectTx) (string, error) {
		key := fmt.Sprintf("%s.tx%016x", in.ID, rand.Uint64())
		_, err := childRuntime.Load().StartTx(ctx, tx, "teller", key, map[string]any{"key": in.ID + ".told"})
		return key, err
	})
	if err != nil {
		return nil, err
	}
	told, err := workers.Await[map[string]string](ctx, "asked", 0, workers.SignalKey(in.ID+".told"))
	if err != nil {
		return nil, err
	}
	_, err = quipu.DoTx(ctx, "tell", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
		_, err := childRuntime.Load().SignalTx(ctx, tx, "asked", in.ID+".asker", key)
		return nil, err
	})
	return map[string]string{"key": key, "from": told["from"]}, err
}

// waits awaits a job that does not end by itself, and a signal beside it.
func (o outsider) waits(ctx context.Context, in order) (any, error) {
	_, err := workers.All(ctx,
		func(ctx context.Context) (any, error) {
			return workers.Child[any](ctx, "tree", "tree", map[string]any{"depth": 0}, workers.ChildKey(in.ID+".kid"))
		},
		func(ctx context.Context) (any, error) {
			return workers.Await[any](ctx, "waits", time.Hour, workers.SignalKey(in.ID))
		},
	)
	return nil, err
}
