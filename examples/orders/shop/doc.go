// Package shop is the outside world of the orders: a shop's payment service, warehouse, carrier
// and bookkeeping behind one HTTP handler, in memory. The demo runs one itself; bin/paysvc serves
// one.
//
// Every POST needs an Idempotency-Key. A key is applied once: its answer is stored and repeated;
// other content under the same key gets 422. Some cards are refused (402). Some are flaky: the
// first charge request fails before the charge is applied and the second one after it, both with
// 503. Sold-out goods cannot be reserved (409). Package examples/orders has the rules.
//
// GET /stats counts requests and applied keys; GET /charges lists the applied charges.
package shop
