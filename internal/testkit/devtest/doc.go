// Package devtest gives tests real servers: one private Postgres per test binary, started on
// demand, with a database for each test; and an embedded NATS server per call.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { devtest.Main(m) }
//
// which puts temporary files in memory if there is room and TMPDIR is not set, stops the Postgres
// by its pid, removes its directory, and fails the binary if goroutines are left (goleak).
package devtest
