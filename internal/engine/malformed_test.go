package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/membus"
	"github.com/quipu-journal/quipu/internal/testkit/transporttest"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// E8, E10: a response that the engine cannot read is a failed attempt of its request, recorded with
// what is wrong, and its worker is asked again as often as the policy says.
func TestE8AResponseThatCannotBeReadIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ response, says string }{
		"a code of no error":  {`{"kind":"failed","code":999,"error":{"class":"x","message":"y"}}`, "code 999 is neither 200 nor within 400…599"},
		"a kind of no one":    {`{"kind":"done","code":200}`, `response kind "done"`},
		"a class with U+0000": {`{"kind":"failed","code":500,"error":{"class":"a\u0000b","message":"y"}}`, "U+0000"},
		"a long class":        {`{"kind":"failed","code":500,"error":{"class":"` + strings.Repeat("c", 20<<10) + `","message":"y"}}`, "over 16384 bytes"},
		"a long wait":         {`{"kind":"failed","code":500,"retry_after_ms":31536000001,"error":{"class":"x","message":"y"}}`, "retry_after_ms"},
		"too deep":            {`{"kind":"terminal","code":200,"output":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "response"},
		"a key twice":         {`{"kind":"terminal","code":200,"output":{"a":1,"a":2}}`, "twice"},
		"no JSON":             {`{"kind":"terminal","code":200,"output":NaN}`, "response"},
		"a number of no size": {`{"kind":"terminal","code":200,"output":1e999999999}`, "response"},
		"another type":        {`"done"`, "response"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r := start(t, engine.Config{}, membus.Config{Seed: 1}, nil, workers.New())
				r.deploy("flow: order\nversion: \"1\"\nactivities:\n  start: {type: trigger}\n  work: {type: worker, topic: t.foreign, retry: {attempts: 2, jitter: 0}}\ntransitions: {start: [work]}\n")
				var runs atomic.Int64
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- r.bus.Consume(ctx, transport.ToWork("t.foreign"), 1, foreign(t, r, &runs, c.response))
				}()
				job := r.run("order", "k", `{}`)
				r.failed(job, journal.JobFailed, 502, c.says)
				require.Equal(t, int64(2), runs.Load(), "as the policy says")
				require.Empty(t, r.letters())
				failures := 0
				for _, e := range r.entries(job) {
					if x := e.Response; x != nil && x.Error != nil && x.Error.Class == wire.ClassResponse {
						require.Contains(t, x.Error.Message, "the engine refused the response of topic t.foreign: ")
						failures++
					}
				}
				require.Equal(t, 2, failures)
				cancel()
				require.NoError(t, <-ended)
				r.proved(job)
			})
		})
	}
}

// foreign answers requests with bytes of its own, as a worker in another language may.
func foreign(t *testing.T, r *rig, runs *atomic.Int64, response string) func(transport.Delivery) {
	return func(d transport.Delivery) {
		runs.Add(1)
		q, err := wire.Decode[wire.Request](d.Message().Body)
		if err != nil {
			t.Error(err)
			return
		}
		job, _ := journal.ParseJobID(q.Job)
		request, _ := journal.ParseGUID(q.Request)
		h := d.Message().Header
		h.GUID, h.Topic = collation.ResponseGUID(request, q.Turn), q.Topic
		body := fmt.Sprintf(`{"kind":"response","job":%q,"row":%q,"activity":%q,"dad":%q,"turn":%d,"flow":%q,"version":%q,"response":%s}`,
			q.Job, q.Request, q.Activity, q.DAD, q.Turn, q.Flow, q.Version, response)
		m := transport.Message{
			To: transport.ToLane(wire.LaneOf(job, r.eng.Config().Lanes)), Header: h, Body: []byte(body),
		}
		if err := transporttest.Publish(context.Background(), r.bus, m); err != nil {
			t.Error(err)
		}
		_ = d.Ack()
	}
}

// T3: where a response does not say what it answers, its letter says whose it is.
func TestT3AResponseWithoutAnAddressNamesItsTopic(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := start(t, engine.Config{}, membus.Config{Seed: 1}, nil, workers.New())
		other := journal.GUID{3, 6: 0x80, 8: 0x80}
		for n, body := range []string{
			`no`, `[]`, `{"kind":"response","row":"` + other.String() + `","turn":1,"response":{}}`,
		} {
			require.NoError(t, transporttest.Publish(t.Context(), r.bus, transport.Message{
				To: transport.ToLane(0), Body: []byte(body),
				Header: transport.Header{
					GUID: other, Turn: 1, Topic: "t.foreign", Publication: n + 1, Epoch: r.eng.Publisher().Epoch.Load(),
				},
			}))
			time.Sleep(time.Minute) // the bubble's clock
			require.Len(t, r.letters(), n+1)
			require.Equal(t, "undecodable", r.letters()[0].Letter.Reason)
			require.Contains(t, r.letters()[0].Letter.Message, `topic "t.foreign", GUID `+other.String()+", turn 1")
		}
	})
}
