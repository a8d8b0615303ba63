package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os/exec"
	"path/filepath"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/examples/orders/shop"
)

// verdict is what journal-verify says of one job, or of the chain of the space itself.
type verdict struct {
	Chain  string `json:"chain"` // "": a job
	Key    string `json:"key"`
	Result string `json:"result"`
	Error  string `json:"error"`
	Open   int    `json:"open_count"`
	Counts struct {
		Entries int `json:"entries"`
	} `json:"counts"`
}

// verify runs journal-verify on the database.
func (d *demo) verify(ctx context.Context) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "journal-verify"), "--json")
	cmd.Env, cmd.Stderr = d.env, &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("journal-verify: %w: are the binaries built?", err)
	}
	verdicts := json.NewDecoder(out)
	for verdicts.More() {
		var v verdict
		if err = verdicts.Decode(&v); err != nil {
			break
		}
		d.verified(&v)
		d.say.count(d.jobs, d.orders)
	}
	_ = out.Close() // what is not read would keep it from ending
	if err = errors.Join(err, cmd.Wait()); err != nil && len(d.faults) == 0 {
		return fmt.Errorf("journal-verify: %w: %s", err, said.Bytes())
	}
	return nil // or the faults say more than its exit code
}

// verified takes what journal-verify says.
func (r *report) verified(v *verdict) {
	if v.Result != "proved" || v.Open > 0 {
		r.fault("journal of %s: %s, %d open obligations %s", cmp.Or(v.Key, v.Chain), v.Result, v.Open, v.Error)
		return
	}
	if v.Chain != "" {
		return
	}
	r.jobs++
	r.entries += v.Counts.Entries
}

// check compares every order and every charge with the rules.
func (d *demo) check(ctx context.Context, lines []orders.Line, outcomes []orders.Outcome, services *shop.Shop) error {
	letters, err := d.rt.Operator().DeadLetters(ctx, quipu.DeadLetterFilter{All: true})
	if err != nil {
		return err
	}
	d.row("journals verified", d.jobs, len(lines))
	d.row("dead letters", len(letters), 0)
	d.compare(lines, outcomes, services.Charges(), services.Counts())
	return nil
}

// compare compares how the orders ended and what the shop has in its books with the rules.
func (r *report) compare(
	lines []orders.Line, outcomes []orders.Outcome, charges []shop.Charge, counts map[string]shop.Count,
) {
	applied := map[string][]shop.Charge{}
	for _, c := range charges {
		applied[c.Order] = append(applied[c.Order], c)
	}
	found, expected := map[orders.Outcome]int{}, map[orders.Outcome]int{}
	for i := range lines {
		l, got, want := &lines[i], outcomes[i], lines[i].Input.Expected()
		found[got]++
		expected[want]++
		if got != want {
			r.fault("%s is %s, expected %s", l.Key, got, want)
		}
		r.charge(l, applied[l.Key])
	}
	for _, o := range orders.Outcomes {
		r.row("orders "+string(o), found[o], expected[o])
	}
	shipped, refunded := expected[orders.Shipped], expected[orders.Refunded]
	r.row("charges", len(charges), shipped+refunded)
	r.row("reservations", counts["reservations"].Applied, shipped)
	r.row("shipments", counts["shipments"].Applied, shipped)
	r.row("refunds", counts["refunds"].Applied, refunded)
	r.row("invoices", counts["invoices"].Applied, expected[orders.Invoiced])
	for _, c := range counts {
		r.requests, r.failed, r.repeated = r.requests+c.Requests, r.failed+c.Faults, r.repeated+c.Repeated
	}
}

// charge checks that an order was charged once, the exact amount, or not at all.
func (r *report) charge(l *orders.Line, charges []shop.Charge) {
	want := 0
	if l.Input.Expected().Charged() {
		want = 1
	}
	if len(charges) != want {
		r.fault("%s was charged %d times, expected %d", l.Key, len(charges), want)
		return
	}
	total, err := l.Input.Total()
	if err != nil {
		r.fault("%s: %v", l.Key, err)
		return
	}
	for _, c := range charges {
		amount, ok := new(big.Rat).SetString(c.Amount.String())
		if !ok || amount.Cmp(total) != 0 || c.Currency != l.Input.Currency {
			r.fault("%s was charged %s %s, expected %s %s", l.Key, c.Amount, c.Currency,
				total.FloatString(orders.Places(l.Input.Currency)), l.Input.Currency)
		}
	}
}
