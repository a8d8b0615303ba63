package orders

import (
	_ "embed" // order.yaml
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Flow is order.yaml.
//
//go:embed order.yaml
var Flow string

// Address is where Flow expects the shop's services: host and port.
const Address = "127.0.0.1:7780"

// Line is one job to start, as a line of `quipu start -` has it.
type Line struct {
	Flow  string `json:"flow"`
	Key   string `json:"key"`
	Input Order  `json:"input"`
}

// Order is the input of the flow. Numbers keep their spelling, so that they stay
// exact.
type Order struct {
	Order    string      `json:"order"`
	Customer Customer    `json:"customer"`
	Currency string      `json:"currency"`
	Tax      json.Number `json:"tax"`
	Shipping json.Number `json:"shipping"`
	Lines    []Item      `json:"lines"`
	Card     string      `json:"card"`
}

// Customer is the person who ordered.
type Customer struct {
	Name    string `json:"name"`
	Country string `json:"country"`
	Terms   string `json:"terms"` // card, or invoice: may pay later
}

// Item is one line of an order.
type Item struct {
	SKU      string      `json:"sku"`
	Name     string      `json:"name"`
	Price    json.Number `json:"price"`
	Quantity json.Number `json:"quantity"`
}

// Prefixes of cards that the payment service treats specially.
const (
	refusedCard = "tok_refused_"
	flakyCard   = "tok_flaky_"
)

// Refused reports whether the card is refused, with status 402.
func Refused(card string) bool { return strings.HasPrefix(card, refusedCard) }

// Flaky reports whether the first two requests of a charge of the card fail with status 503: the
// first one before the charge is applied, the second one after it.
func Flaky(card string) bool { return strings.HasPrefix(card, flakyCard) }

// Outcome is how an order ends.
type Outcome string

// The outcomes.
const (
	Shipped  Outcome = "shipped"  // charged, reserved, shipped
	Refunded Outcome = "refunded" // charged, sold out, refunded
	Invoiced Outcome = "invoiced" // card refused, pays later
	Failed   Outcome = "failed"   // card refused: the job fails with code 402
)

// Outcomes are all outcomes, in the order in which they are shown.
var Outcomes = []Outcome{Shipped, Refunded, Invoiced, Failed}

// Charged reports whether an order of this outcome was charged.
func (o Outcome) Charged() bool { return o == Shipped || o == Refunded }

// Expected returns how the order must end.
func (o *Order) Expected() Outcome {
	if Refused(o.Card) {
		if o.Customer.Terms == "invoice" {
			return Invoiced
		}
		return Failed
	}
	for _, l := range o.Lines {
		if SoldOut(l.SKU) {
			return Refunded
		}
	}
	return Shipped
}

// Total returns the exact amount to charge: the lines with tax, rounded to the currency's places
// (halves away from zero), and the shipping.
func (o *Order) Total() (*big.Rat, error) {
	sum := new(big.Rat)
	for _, l := range o.Lines {
		price, err := exact(l.Price)
		if err != nil {
			return nil, err
		}
		quantity, err := exact(l.Quantity)
		if err != nil {
			return nil, err
		}
		sum.Add(sum, price.Mul(price, quantity))
	}
	tax, err := exact(o.Tax)
	if err != nil {
		return nil, err
	}
	shipping, err := exact(o.Shipping)
	if err != nil {
		return nil, err
	}
	sum.Mul(sum, tax.Add(tax, big.NewRat(1, 1)))
	return sum.Add(round(sum, Places(o.Currency)), shipping), nil
}

func exact(n json.Number) (*big.Rat, error) {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil, fmt.Errorf("%q is not a number", n.String())
	}
	return r, nil
}

// round rounds a positive number to places decimal places, a half up.
func round(x *big.Rat, places int) *big.Rat {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)
	scaled := new(big.Rat).Mul(x, new(big.Rat).SetInt(unit))
	scaled.Add(scaled, big.NewRat(1, 2))
	whole := new(big.Int).Quo(scaled.Num(), scaled.Denom())
	return new(big.Rat).SetFrac(whole, unit)
}
