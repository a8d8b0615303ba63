// Command demo shows what Quipu promises: 2 000 orders run through charge →
// reserve → ship over real servers, while one of two worker processes is killed
// with SIGKILL and started again; then every order, every charge and every entry
// of the journal is checked, and a table says what was found.
//
// The workers and journal-verify are the built binaries, processes of their own. NATS,
// Postgres (package dev) and the shop that charges and ships (package
// examples/orders/shop) belong to the demo, which starts jobs and waits for them as any
// program does. It stops everything also when it is interrupted; on Linux also when it
// is killed.
package main
