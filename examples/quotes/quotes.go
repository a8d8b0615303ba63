package quotes

import (
	"context"

	"github.com/quipu-journal/quipu/workers"
)

// Ask is one carrier and the load: an element of tender.yaml.
type Ask struct {
	Carrier   string `json:"carrier"`
	Kilograms int64  `json:"kilograms"`
}

// Offer is a carrier's price.
type Offer struct {
	Carrier string `json:"carrier"`
	Cents   int64  `json:"cents"`
}

// Tariffs has the price of a kilogram, in cents, by carrier.
type Tariffs map[string]int64

// Quote asks one carrier. It changes nothing outside, so it may simply run again after a crash. A
// carrier without a tariff declines: an error of 400 to 499 is an answer and is not retried; any
// other error is.
func (t Tariffs) Quote(_ context.Context, in Ask) (Offer, error) {
	cents, ok := t[in.Carrier]
	if !ok {
		return Offer{}, workers.Fail(422, in.Carrier+" does not go there")
	}
	return Offer{in.Carrier, cents * in.Kilograms}, nil
}

// Register adds the handler of tender.yaml to those of a worker process:
//
//	rt, err := quipu.Open(ctx, quipu.Config{…, Workers: reg})
//	err = rt.Run(ctx)
func (t Tariffs) Register(reg *workers.Registry) { workers.Handle(reg, "quotes.ask", t.Quote) }
