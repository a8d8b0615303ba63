package sim

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// The methods of the store for workers.

func leased(op string, l *store.Lease) string {
	return op + " " + short(l.Request) + " " + strconv.FormatInt(l.Fence, 10) + " " + l.Holder
}

func (s *port) Lease(
	ctx context.Context, job journal.JobID, request journal.GUID, turn int, holder string, session int64,
) (store.Lease, error) {
	return through(ctx, s.p, kindWrite, "lease "+short(request)+" "+holder, func() (store.Lease, error) {
		return s.Store.Lease(ctx, job, request, turn, holder, session)
	})
}

func (s *port) Keep(ctx context.Context, l store.Lease) (store.Lease, error) {
	return through(ctx, s.p, kindWrite, leased("keep", &l), func() (store.Lease, error) { return s.Store.Keep(ctx, l) })
}

func (s *port) HandBack(ctx context.Context, l store.Lease) error {
	return action(ctx, s.p, kindWrite, leased("hand back", &l), func() error { return s.Store.HandBack(ctx, l) })
}

func (s *port) Input(ctx context.Context, job journal.JobID, request journal.GUID) ([]byte, error) {
	return through(ctx, s.p, kindRead, "input "+short(request), func() ([]byte, error) {
		return s.Store.Input(ctx, job, request)
	})
}

func (s *port) Effects(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.EffectRow, error) {
	return through(ctx, s.p, kindRead, "effects "+short(request), func() ([]store.EffectRow, error) {
		return s.Store.Effects(ctx, job, request)
	})
}

// hands write the effects of a process's handlers. Their calls pass the gate before the
// committer, so that they come in one order.
type hands struct {
	store.Worker
	p *process
}

func (h hands) StartEffect(
	ctx context.Context, l store.Lease, e journal.Effect,
) (row store.EffectRow, taken bool, err error) {
	err = action(ctx, h.p, kindWrite, leased("start effect "+e.Name+" "+hex.EncodeToString(e.Key[:5]), &l), func() error {
		row, taken, err = h.Worker.StartEffect(ctx, l, e)
		return err
	})
	return row, taken, err
}

func (h hands) FinishEffect(
	ctx context.Context, l store.Lease, e journal.Effect, notDone bool,
) (store.EffectRow, error) {
	id := leased("finish effect "+e.Name+" "+hex.EncodeToString(e.Key[:5]), &l)
	return through(ctx, h.p, kindWrite, id, func() (store.EffectRow, error) {
		return h.Worker.FinishEffect(ctx, l, e, notDone)
	})
}

// SendOutcome lets the outcome and what the run does next pass the gate in any order.
func (h hands) SendOutcome(ctx context.Context, l store.Lease, e journal.Effect, ended func(store.EffectRow, error)) {
	id := leased("send outcome "+e.Name+" "+hex.EncodeToString(e.Key[:5]), &l)
	go func() {
		ended(through(context.WithoutCancel(ctx), h.p, kindWrite, id, func() (row store.EffectRow, err error) {
			told := make(chan struct{})
			h.Worker.SendOutcome(ctx, l, e, func(r store.EffectRow, failed error) {
				row, err = r, failed
				close(told)
			})
			<-told
			return row, err
		}))
	}()
}

func (h hands) TxEffect(
	ctx context.Context, l store.Lease, e journal.Effect, call store.TxCall,
) (store.EffectRow, error) {
	id := leased("tx effect "+e.Name+" "+hex.EncodeToString(e.Key[:5]), &l)
	return through(ctx, h.p, kindWrite, id, func() (store.EffectRow, error) {
		defer h.p.world.stir()
		return h.Worker.TxEffect(ctx, l, e, call)
	})
}

func (h hands) PutPayload(ctx context.Context, job journal.JobID, digest journal.Digest, body []byte) error {
	return action(ctx, h.p, kindWrite, "payload "+short(job)+" "+hex.EncodeToString(digest[:5]), func() error {
		return h.Worker.PutPayload(ctx, job, digest, body)
	})
}

func (h hands) DeadLetter(ctx context.Context, d collation.DeadLetter, raw []byte) error {
	return action(ctx, h.p, kindWrite, "dead letter "+d.Reason+" "+short(d.Row), func() error {
		return h.p.committer.DeadLetter(ctx, d, raw)
	})
}

// The methods for clients and operators.

func (s *port) Letter(ctx context.Context, id int64) (*collation.Letter, error) {
	return through(ctx, s.p, kindRead, fmt.Sprintf("letter %d", id), func() (*collation.Letter, error) {
		return s.Store.Letter(ctx, id)
	})
}

func (s *port) Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.Pause, error) {
	return through(ctx, s.p, kindRead, "pauses "+short(request), func() ([]store.Pause, error) {
		return s.Store.Pauses(ctx, job, request)
	})
}
