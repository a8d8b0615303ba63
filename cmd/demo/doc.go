// Command demo shows what Quipu promises: 2 000 orders run through charge →
// reserve → ship over real servers, while one of two worker processes is killed
// with SIGKILL and started again; then every order, every charge and every entry
// of the journal is checked, and a table says what was found.
//
// It starts the built binaries as processes of their own: `worker dev
// --servers-only`, two workers, and the payment service paysvc. Every process is
// stopped by its pid, also when the demo is interrupted; on Linux also when it is
// killed.
package main
