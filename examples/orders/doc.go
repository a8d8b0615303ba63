// Package orders has the data of the demo: a shop's catalogue, a deterministic generator of
// orders (which wrote orders.jsonl), and the rules for the outcome of each order.
//
// order.yaml is the flow they run through: charge → reserve → ship; refund when
// the goods cannot be reserved; an invoice when a card is refused and the
// customer may pay later. The shop's services are package shop.
package orders
