package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/workers"
)

// watched records that a call outlasts its attempt although its process lives: the attempt's
// timeout passes, or another run of the same request, which was delivered twice, has answered it,
// so another attempt may begin. done is called at the end of the call.
func (w *world) watched(ctx context.Context, key string) (done func()) {
	call := workers.Info(ctx)
	look := func() {
		if errors.Is(context.Cause(ctx), workers.ErrTimeout) || w.answered(&call) {
			w.receiver.cutOff(key)
		}
	}
	stop := context.AfterFunc(ctx, look)
	return func() {
		stop()
		look()
	}
}

// answered says that the turn of a call is over, or its job: a job that resumes it finds the call begun.
func (w *world) answered(call *workers.Call) bool {
	job, err := journal.ParseJobID(call.Job)
	if err != nil {
		panic(err)
	}
	request, err := journal.ParseGUID(call.Request)
	if err != nil {
		panic(err)
	}
	at := w.store.Peek(job, request, journal.GUID{})
	return at.State.Closed() || outlasted(at.Row, call.Turn)
}

// outlasted says that the turn of a call was answered, but not by parking its request: parking a
// live call is the fault that is looked for (P31).
func outlasted(row *collation.Row, turn int) bool {
	return row != nil && row.Turn > turn && (row.Turn > turn+1 || row.Held != collation.HeldParked)
}

// cutOff records that the call with the key outlasted its attempt.
func (r *receiver) cutOff(key string) {
	r.rmu.Lock()
	defer r.rmu.Unlock()
	r.cut[key] = true
}

// excused says that a dead letter's message is no fault. The attempt whose timeout passed says so
// itself; or, if its answer was lost or came from another run, the next attempt finds a started
// call without an outcome.
func (r *receiver) excused(message string) bool {
	if strings.Contains(message, "timeout of the attempt") {
		return true
	}
	r.rmu.Lock()
	defer r.rmu.Unlock()
	for key := range r.cut {
		if strings.Contains(message, "(key "+key+") may have been applied: the run that called it died or lost its lease") {
			return true
		}
	}
	return false
}

// Only the effect whose call outlasted its attempt is excused (P31).
func TestP31ExcusesWhatOutlastsItsTry(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	r.init()
	r.cutOff("aa")
	died := func(key string) string {
		return `effect "e0" (key ` + key + `) may have been applied: the run that called it died or lost its lease; look outside`
	}
	require.True(t, r.excused(`effect "e0" (key bb) may have been applied: the timeout of the attempt passed`))
	require.True(t, r.excused(died("aa")), "the next run finds what the one before left")
	require.False(t, r.excused(died("bb")), "its call did not")
	require.False(t, r.excused(`effect "e0" (key aa) may have been applied: no answer from outside`), "another reason")

	require.False(t, outlasted(nil, 1))
	require.False(t, outlasted(&collation.Row{Request: collation.Request{Turn: 1}}, 1), "its turn goes on")
	require.True(t, outlasted(&collation.Row{Request: collation.Request{Turn: 2}}, 1), "another run failed")
	require.True(t, outlasted(&collation.Row{Request: collation.Request{Turn: 3}, Held: collation.HeldParked}, 1), "another run failed, and the next one parked it")
	require.False(t, outlasted(&collation.Row{Request: collation.Request{Turn: 2}, Held: collation.HeldParked}, 1), "it was parked while its run was alive")
}
