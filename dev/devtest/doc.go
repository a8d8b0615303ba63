// Package devtest gives tests real servers: one private Postgres per test
// binary, started when the first test asks, with a database of its own for each
// test; and an embedded NATS server per call.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { devtest.Main(m) }
//
// which puts temporary files in memory where there is room, unless TMPDIR says
// otherwise, stops the Postgres by its pid, removes its directory, and fails the
// binary when goroutines are left (goleak).
package devtest
