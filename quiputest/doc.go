// Package quiputest is a test kit for users: their flows and handlers play in a
// world in memory, with the real engine and the real worker runtime, in which time
// is skipped.
//
//	func TestReminder(t *testing.T) {
//		quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
//			w.DeployFiles("flows/*.yaml")
//			w.Serve(orders.Register)
//
//			job := w.Start("order", "o-1", Order{…})
//			w.Advance(30 * 24 * time.Hour)
//			w.Signal("order.paid", "o-1", nil)
//
//			var out Shipped
//			job.Output(&out) // waits until the job has completed
//		})
//	}
//
// Run plays one scenario, in a bubble of testing/synctest. CrashEverywhere plays it
// once for each place at which a worker process could die, and compares.
// ReplayJournal runs new code against journals that old code wrote. All three
// verify journals as journal-verify does. docs/testing.md is the guide; its code is
// that of docs_test.go.
//
// A World is a store and a bus of packages journal/memory and transport/memory
// behind ports of its own: those hold the sweeper until something is due, and they
// end when the process that they belong to dies. Nothing of what is tested is
// replaced.
package quiputest
