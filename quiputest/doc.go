// Package quiputest is a test kit for users. Their flows and handlers run in a world in memory,
// with the real engine and the real worker runtime, and time is skipped.
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
// Run plays one scenario in a bubble of testing/synctest. CrashEverywhere plays it once for each
// place where a worker process could die, and compares the results. ReplayJournal runs new code
// against journals of old code. All three verify journals as journal-verify does. docs/testing.md
// is the guide; its code is in docs_test.go.
//
// A World has the store and the bus of packages internal/memstore and internal/membus behind its
// own ports. These let the sweeper sleep until something is due, and fail once the process that
// they belong to is dead. Everything under test is real.
package quiputest
