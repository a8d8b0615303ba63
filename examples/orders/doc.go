// Package orders has the data of the demo: a shop's catalogue, a deterministic generator of
// orders, and the rules for the outcome of each order.
//
// order.yaml is the flow of an order: charge → reserve → ship. It refunds if the goods cannot be
// reserved, and sends an invoice if a card is refused and the customer may pay later. Package
// shop has the shop's services.
package orders
