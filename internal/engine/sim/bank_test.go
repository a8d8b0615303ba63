package sim

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/memstore"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/journaltest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// accounts of the bank. All begin with 0 and may be negative: their sum stays 0.
const accounts = 3

// bank is what effects of class Tx write (I13), and how often their bodies ran.
type bank struct {
	tmu    sync.Mutex
	bodies map[string]int    // by key
	stood  map[string]string // what the body of a removed job's run found written, by key
	dirty  bool              // something may have been committed since the last check
}

func (b *bank) init() { b.bodies, b.stood = map[string]int{}, map[string]string{} }

// stir records that a Tx effect has ended.
func (b *bank) stir() {
	b.tmu.Lock()
	defer b.tmu.Unlock()
	b.dirty = true
}

func account(n int) string { return "account-" + strconv.Itoa(n%accounts) }

func amountOf(value string) int {
	n, _ := strconv.Atoi(value) // "" counts as 0
	return n
}

// receipt is the result of a transfer: which run of its body was committed.
type receipt struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

// follower is the key of the job that a run of a body begins.
func follower(key string, n int) string { return fmt.Sprintf("after-%s-%d", key, n) }

// transfer is the body of an effect of class Tx. It takes from one account and gives to another,
// while others do the same, and it begins a job and sends a signal.
func (p *process) transfer(ctx context.Context, e *effect, tx *memstore.EffectTx) (json.RawMessage, error) {
	w := p.world
	key := effects.Key(ctx)
	w.tmu.Lock()
	w.bodies[key]++
	n := w.bodies[key]
	w.dirty = true
	w.tmu.Unlock()
	from := int(key[0])
	amount := 1 + int(key[1])%7
	if stood := tx.Get("transfer-" + key); stood != "" {
		w.rerun(workers.Info(ctx).Job, e.Name, key, stood)
	}
	tx.Put(account(from), strconv.Itoa(amountOf(tx.Get(account(from)))-amount))
	v := w.gate.pass(ctx, p, kindOutside, fmt.Sprint("transfer ", key[:12], " ", n))
	tx.Put(account(from+1), strconv.Itoa(amountOf(tx.Get(account(from+1)))+amount))
	tx.Put("transfer-"+key, strconv.Itoa(n))
	if workers.Info(ctx).Flow == w.plan.main { // a follow-up is a job of the other flow
		tx.Put("follows-"+key, strconv.Itoa(n))
		_, err := p.committer.StartTx(ctx, tx, store.Start{
			Flow: w.plan.refs[w.plan.kid], Trigger: "start", Key: follower(key, n), Input: []byte(`{"list":[1],"v":1}`),
		})
		if err != nil {
			return nil, err
		}
		if _, err := p.committer.SignalTx(ctx, tx, w.news(key, n)); err != nil {
			return nil, err
		}
	}
	switch {
	case p.gone():
		return nil, p.park()
	case v.err != nil:
		return nil, v.err
	case e.How == "notdone" && n == 1:
		return nil, effects.NotDone(errors.New("as told"))
	case e.How == "refused":
		return nil, workers.Fail(402, "as told")
	case e.How == "slow" && n == 1:
		panic("as told")
	}
	return json.Marshal(receipt{key, n})
}

// rerun judges a run of a body whose writes exist already. That may only be a run for a job that
// was removed, together with its effects, or resumed, so that its effects are another's, while its
// request was on its way (P29). Nothing of such a run is committed, since it has no row (J8);
// followed checks that.
func (w *world) rerun(job, name, key, stood string) {
	id, err := journal.ParseJobID(job)
	if err != nil {
		panic(err)
	}
	if v, err := w.store.Job(context.Background(), id); err == nil && v.State != journal.JobExpired && v.Next.IsZero() {
		w.wrong("E3: the body of Tx effect %s with key %s runs again, and its writes are there", name, key)
		return
	} else if err != nil && !errors.Is(err, store.ErrNotFound) {
		panic(err)
	}
	w.tmu.Lock()
	defer w.tmu.Unlock()
	w.stood[key] = stood
}

// news returns the signal that a run of a body sends.
func (w *world) news(key string, n int) collation.Signal {
	return collation.Signal{
		GUID: collation.SignalGUID(space, "tell", "any", follower(key, n)), Topic: "tell", Key: "any", Code: collation.CodeOK,
		Payload: json.RawMessage(`{"ok":true}`),
	}
}

// conserved checks the sum of the bank (I13).
func (w *world) conserved() {
	w.tmu.Lock()
	dirty := w.dirty
	w.dirty = false
	w.tmu.Unlock()
	if dirty {
		if wrong := unbalanced(w.store.Value); wrong != "" {
			w.wrong("%s", wrong)
		}
	}
}

// unbalanced says how a bank is out of balance.
func unbalanced(value func(key string) string) string {
	sum := 0
	for n := range accounts {
		sum += amountOf(value(account(n)))
	}
	if sum != 0 {
		return fmt.Sprintf("I13: the sum of the accounts is %d: a transfer is committed in part", sum)
	}
	return ""
}

// transferred compares a job's effects of class Tx with what they wrote: only the committed run
// of each body has left its writes (I1) and begun its follow-ups (P24, P25).
func (w *world) transferred(s *store.Stored) {
	for i := range s.Effects {
		e := &s.Effects[i]
		if effects.Class(e.Class) != effects.Tx || redone(s, e) {
			continue
		}
		var r receipt
		if e.State == store.EffectCompleted && e.Error == nil {
			if err := json.Unmarshal(e.Result, &r); err != nil {
				w.wrong("I1: the result of Tx effect %s of %s is %s", e.Name, s.Job.Key, e.Result)
			}
		}
		key := e.Key.String()
		if wrong := r.misses(key, w.store.Value("transfer-"+key)); wrong != "" {
			w.wrong("I1: Tx effect %s of %s: %s", e.Name, s.Job.Key, wrong)
		}
	}
}

// redone says that an effect is recorded as not done because it is done again: in the job that this
// one resumes it has failed, or was undone.
func redone(s *store.Stored, e *store.EffectRow) bool {
	resumed := s.Job.From != nil && !s.Job.From.Forks()
	return resumed && e.State == store.EffectNotDone && e.Error != nil && e.Error.Class != collation.FailureOperator
}

// misses says how the writes of a transfer differ from its record.
func (r *receipt) misses(key, written string) string {
	recorded := ""
	if r.N > 0 {
		recorded = strconv.Itoa(r.N)
	}
	switch {
	case r.N > 0 && r.Key != key:
		return fmt.Sprintf("its result is that of key %s", r.Key)
	case recorded != written:
		return fmt.Sprintf("run %q of its body is recorded, and run %q has written", recorded, written)
	}
	return ""
}

// followed compares the follow-ups of bodies with what was committed: only the job and the signal
// of the run that the bank records exist (P24, P25). views are all jobs.
func (w *world) followed(views []*store.JobView) {
	began := map[string]bool{}
	for _, v := range views {
		if strings.HasPrefix(v.Key, "after-") && !strings.Contains(v.Key, "/") { // without jobs of compensations of such jobs
			began[v.Key] = true
		}
	}
	for key, runs := range w.bodies {
		if w.store.Value("transfer-"+key) != "" && !w.plan.content.expire && !w.inBank(key) {
			w.wrong("I1: the transfer with key %s is written, and no effect is completed", key)
		}
		follows := amountOf(w.store.Value("follows-" + key))
		for n := 1; n <= runs; n++ {
			name := follower(key, n)
			news := w.news(key, n)
			sent, err := journaltest.Driven{Store: w.store}.Signal(context.Background(), &news, collation.Mode{})
			if err != nil {
				panic(err)
			}
			if astray(n, follows, began[name], sent.Duplicate) {
				w.wrong("P24: of the body with key %s run %d was committed; of run %d the job began: %t, the signal was sent: %t",
					key, follows, n, began[name], sent.Duplicate)
			}
			delete(began, name)
		}
	}
	for key, stood := range w.stood {
		if written := w.store.Value("transfer-" + key); written != stood {
			w.wrong("J8: run %s of the body with key %s was committed when its job was removed; run %s had been before", written, key, stood)
		}
	}
	for key := range began {
		w.wrong("P25: no body ran that began %s", key)
	}
}

// astray says that the follow-ups of the n-th run do not match the committed run; 0 stands for
// none.
func astray(n, committed int, began, sent bool) bool {
	return began != (n == committed) || sent != (n == committed)
}

// inBank says whether the effect with the key is completed.
func (w *world) inBank(key string) bool {
	raw, err := hex.DecodeString(key)
	if err != nil {
		return false
	}
	found, err := w.store.FindEffect(context.Background(), journal.Digest(raw))
	return err == nil && slices.ContainsFunc(found, func(f store.JobEffect) bool {
		return f.State == store.EffectCompleted
	})
}

// I13 and I1 of Tx effects can fail.
func TestI13SaysWhatIsOutOfBalance(t *testing.T) {
	t.Parallel()
	values := map[string]string{account(0): "-5", account(1): "5"}
	value := func(key string) string { return values[key] }
	require.Empty(t, unbalanced(value))
	values[account(0)] = "-3"
	require.NotEmpty(t, unbalanced(value), "taken of another amount than given")
	delete(values, account(1))
	require.NotEmpty(t, unbalanced(value), "taken, and not given")
	for name, c := range map[string]struct {
		r       receipt
		written string
		wrong   bool
	}{
		"committed":                  {receipt{"k", 2}, "2", false},
		"nothing":                    {receipt{}, "", false},
		"recorded, and not written":  {receipt{"k", 1}, "", true},
		"written, and not recorded":  {receipt{}, "1", true},
		"another run has written":    {receipt{"k", 2}, "1", true},
		"recorded under another key": {receipt{"j", 1}, "1", true},
	} {
		require.Equal(t, c.wrong, c.r.misses("k", c.written) != "", name)
	}
}
