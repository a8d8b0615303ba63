package faults

import (
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/internal/fault"
	"github.com/quipu-journal/quipu/internal/wire"
)

// workerEnv holds the workerConfig of a worker process, as JSON.
const workerEnv = "QUIPU_FAULTS_WORKER"

// workerConfig is that of a worker process.
type workerConfig struct {
	Postgres, NATS, Space string
	Outside               string        // URL of the service outside
	Stepwise, NoFold      bool          // as in quipu.Config
	HotBytes              int           // as in quipu.Config
	NoLocal, NoEarly      bool          // as in quipu.Config
	Resend, Lease         time.Duration // Lease is the ack wait as well
	MaxBatch, Committers  int           // 0: their defaults
	Concurrency           int           // 0: its default
	Start                 []string      // ids of jobs that the process starts itself
	Build                 string        // its name in the journal
	Guarded               bool          // the effect of ship is Guarded
	Collector             string        // URL of a collector of telemetry; "": there is none
	StreamBytes           int64         // as in quipu.NATSOptions.MaxBytes

	// Where the process stands still: at the point, passed for the Nth time, from
	// 1; it tells Control and goes on when that answers. "" is nowhere.
	Point   fault.Point
	Nth     int
	Control string // URL
	// Acks has the process tell Control what it acks, before it does (I8).
	Acks bool
}

// arrival is what a process tells Control at its point.
type arrival struct {
	PID   int
	Point fault.Point
	About string
}

// order is the input of a job.
type order struct {
	ID       string `json:"id"`
	From, To int    // accounts
	Amount   int
	Ballast  string `json:",omitempty"`
}

// big ends the ids of jobs whose input takes room on a disk, huge of those whose
// input is too long for a message.
const (
	big  = "-big"
	huge = "-huge"
)

// cellFlow has an activity of each kind of step: workers with an Idempotent and a Tx
// effect beside each other, a join, a durable function that sleeps and waits for
// a signal, a child that is awaited, and a timer.
const cellFlow = `
flow: cell
version: "1"
output: {receipt: "${ charge.output.receipt }", trip: "${ trip.output.got }", leaf: "${ child.output }"}
activities:
  start:  {type: trigger}
  charge: {type: worker, topic: charge, input: "${ start.output }", retry: {attempts: 50, backoff: 100ms, max: 500ms}}
  weigh:  {type: worker, topic: weigh, input: "${ start.output }"}
  move:   {type: worker, topic: move, input: "${ start.output }", retry: {attempts: 50, backoff: 100ms, max: 500ms}}
  trip:   {type: worker, topic: trip, input: "${ start.output }", retry: {attempts: 50, backoff: 100ms, max: 500ms}}
  child:  {type: await, flow: leaf, input: {id: "${ start.output.id }"}}
  ship:   {type: worker, topic: ship, input: "${ start.output }", retry: {attempts: 50, backoff: 100ms, max: 500ms}}
transitions:
  start:  [charge, move]
  charge: [weigh]
  weigh:  [trip]
  move:   [child]
  trip:   [ship]
  child:  [ship]
`

// leafFlow is the flow of the child.
const leafFlow = `
flow: leaf
version: "1"
output: "${ rest.output }"
activities:
  start: {type: trigger}
  rest:  {type: worker, topic: rest, input: "${ start.output }", retry: {attempts: 50, backoff: 100ms, max: 500ms}}
transitions: {start: [rest]}
`

// called are the calls outside of one job: what is applied, once each.
func called(id string) []string {
	return []string{"charge " + id, "trip " + id, "ship " + id, "rest " + id}
}

// orderOf is the input of the job with the id, the same in every process that
// starts it.
func orderOf(id string) order {
	n := 0
	for _, b := range []byte(id) {
		n += int(b)
	}
	o := order{ID: id, From: n % 4, To: (n + 1) % 4, Amount: 1 + n%7}
	for suffix, size := range map[string]int{big: 12 << 10, huge: wire.MaxInline} {
		if strings.HasSuffix(id, suffix) {
			noise := make([]byte, size)
			_, _ = rand.NewChaCha8(sha256.Sum256([]byte(id))).Read(noise) // never fails
			o.Ballast = base64.StdEncoding.EncodeToString(noise)
		}
	}
	return o
}
