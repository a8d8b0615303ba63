// Package shop is the outside world of the orders: a shop's payment service,
// warehouse, carrier and bookkeeping behind one HTTP handler, in memory. The demo
// has one in itself, bin/paysvc serves one.
//
// Every POST needs an Idempotency-Key. A key is applied once: what was answered
// is stored and answered again, for other content under the same key with 422.
// Some cards are refused (402), some are flaky: their first charge request fails
// before the charge is applied and the second after it, both with 503. What is
// sold out cannot be reserved (409). Package examples/orders has the rules.
//
// GET /stats counts what was asked and what was applied, GET /charges lists the
// charges that were applied.
package shop
