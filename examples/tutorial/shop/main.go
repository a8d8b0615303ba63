package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

var (
	bank    = book{path: ".quipu/bank.txt", knowsKeys: true}
	carrier = book{path: ".quipu/carrier.txt"}
)

// Payment is the input of shop.charge.
type Payment struct {
	Order string      `json:"order"`
	Price json.Number `json:"price"` // an exact decimal
}

// charge takes the money. The bank applies a key once, so the call can be made again.
func charge(ctx context.Context, in Payment) (string, error) {
	return effects.Do(ctx, "charge", func(ctx context.Context) (string, error) {
		return bank.enter(ctx, effects.Key(ctx), in.Order+" pays "+in.Price.String())
	}, effects.Idempotent)
}

// Parcel is the input of shop.ship.
type Parcel struct {
	Order string `json:"order"`
	Item  string `json:"item"`
}

// ship has the parcel collected. The carrier knows no keys: a second call is a second van.
func ship(ctx context.Context, in Parcel) (string, error) {
	return effects.Do(ctx, "collect", func(ctx context.Context) (string, error) {
		return carrier.enter(ctx, effects.Key(ctx), "collect "+in.Item+" of "+in.Order)
	}, effects.Guarded)
}

func run(ctx context.Context) error {
	reg := workers.New()
	workers.Handle(reg, "shop.charge", charge)
	workers.Handle(reg, "shop.ship", ship)
	cfg, err := quipu.ConfigFromDev(".quipu")
	if err != nil {
		return err
	}
	cfg.Workers = reg
	cfg.Roles = []quipu.Role{quipu.RoleWorkers}
	rt, err := quipu.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer rt.Close()
	return rt.Run(ctx)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}
