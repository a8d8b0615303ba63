// Package orders is the data of the demo: a shop's catalogue, a deterministic
// generator of orders (orders.jsonl is what it writes), and the rules from which
// the outcome of every order follows.
//
// order.yaml is the flow they run through: charge → reserve → ship; refund when
// the goods cannot be reserved; an invoice when a card is refused and the
// customer may pay later. The shop's services are package shop.
package orders
