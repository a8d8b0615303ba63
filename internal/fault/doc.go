// Package fault names the places where a process may die, hang or lose its servers (6.2), so that
// tests can make that happen exactly there.
//
// In a normal build At is empty and Enabled is a constant false. With the build tag faults, or with
// the race detector, At calls the function of Set, and the goroutine goes on when that returns. Tests
// run with the race detector, so that no package is compiled once more for the points. Each point
// stands at one place of the code; tests/house checks that.
//
// K17, the point of the sealer, is not built.
package fault

// Point is a place of 6.2.
type Point string

// The points, in the order in which a message passes them. Where the comment
// says "of a batch", the messages that the transaction carries are named one
// after another.
const (
	K0  Point = "K0"  // start: its COMMIT is about to be sent; the reply will not come
	K1  Point = "K1"  // before the commit with a Leg1 entry, of a batch
	K2  Point = "K2"  // after the commit of a Leg1 entry, before its work; stepwise
	K3  Point = "K3"  // after the commit of Leg1 work, before anything is published or handed over
	K4  Point = "K4"  // Leg1: published, no PubAck
	K5  Point = "K5"  // Leg1: before the ack
	K6  Point = "K6"  // a worker has the request, its handler was not called
	K7  Point = "K7"  // an effect was done outside, nothing of that is recorded
	K8  Point = "K8"  // a handler has returned, nobody was told
	K9  Point = "K9"  // a response is made and not published; its request is not acked
	K10 Point = "K10" // before the commit with a Leg2 entry, of a batch
	K11 Point = "K11" // after the commit of a Leg2 entry, before step 1; stepwise
	K12 Point = "K12" // after the commit of step 1; stepwise
	K13 Point = "K13" // after the commit of step 2, before its children are published or handed over
	K14 Point = "K14" // after the commit of step 2 that closes the job, before step 3; stepwise
	K15 Point = "K15" // after the commit of step 3, before the ack
	K16 Point = "K16" // an ack is about to be sent; it will be lost
	K18 Point = "K18" // the session of the process is about to be renewed
	K19 Point = "K19" // an early run has answered, and does not know whether its cause has committed
)

// Points are all points.
var Points = []Point{K0, K1, K2, K3, K4, K5, K6, K7, K8, K9, K10, K11, K12, K13, K14, K15, K16, K18, K19}
