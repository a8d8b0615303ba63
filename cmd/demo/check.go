package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/orders"
	"github.com/quipu-journal/quipu/journal"
)

// maxVerifyLine bounds what journal-verify says of one job.
const maxVerifyLine = 4 << 20

// charge is a charge as the payment service lists it.
type charge struct {
	ID       string      `json:"id"`
	Order    string      `json:"order"`
	Currency string      `json:"currency"`
	Amount   json.Number `json:"amount"`
}

// count is what the payment service says of one kind of request.
type count struct{ Requests, Applied, Refused, Repeated, Faults int }

// verify runs journal-verify on the database.
func (s *stack) verify(ctx context.Context, r *report) error {
	cmd := exec.CommandContext(ctx, s.binary("journal-verify"), "--json", "--no-progress")
	cmd.Env = append(os.Environ(), s.connection()...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	said, err := os.Create(s.log + "/journal-verify.log")
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("journal-verify: %w", err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxVerifyLine)
	for lines.Scan() {
		r.verified(lines.Bytes())
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		r.fault("journal-verify ended: %s, see %s", exit, said.Name())
		return nil
	}
	return err
}

// verified takes what journal-verify says of one job.
func (r *report) verified(line []byte) {
	var job struct {
		Key    string `json:"key"`
		Result string `json:"result"`
		Error  string `json:"error"`
		Counts struct {
			Entries int64 `json:"entries"`
		} `json:"counts"`
		OpenCount int `json:"open_count"`
	}
	if err := json.Unmarshal(line, &job); err != nil {
		r.fault("journal-verify says what is no JSON: %.100s", line)
		return
	}
	if job.Result != "proved" {
		r.fault("journal of %s: %s %s", job.Key, job.Result, job.Error)
		return
	}
	if job.OpenCount > 0 {
		r.fault("journal of %s: %d open obligations", job.Key, job.OpenCount)
	}
	r.jobs++
	r.entries += job.Counts.Entries
}

// check compares every order with the rules, and the payment service's books
// with the orders.
func (s *stack) check(ctx context.Context, rt *quipu.Runtime, lines []orders.Line, r *report) error {
	var charges []charge
	if err := ask(ctx, s.paysvc+"/charges", &charges); err != nil {
		return fmt.Errorf("charges of the payment service: %w", err)
	}
	if err := ask(ctx, s.paysvc+"/stats", &r.counts); err != nil {
		return fmt.Errorf("counts of the payment service: %w", err)
	}
	applied := map[string][]charge{}
	for _, c := range charges {
		applied[c.Order] = append(applied[c.Order], c)
	}
	r.expected, r.found = map[orders.Outcome]int{}, map[orders.Outcome]int{}
	for i := range lines {
		if err := r.order(ctx, rt, &lines[i], applied[lines[i].Key]); err != nil {
			return err
		}
		delete(applied, lines[i].Key)
	}
	for key := range applied {
		r.fault("a charge of %s, which is no order", key)
	}
	r.books()
	return nil
}

// order checks one order.
func (r *report) order(ctx context.Context, rt *quipu.Runtime, l *orders.Line, charges []charge) error {
	want := l.Input.Expected()
	r.expected[want]++
	if want.Charged() {
		r.charged++
	}
	job, err := rt.Find(ctx, l.Key)
	if errors.Is(err, quipu.ErrNotFound) {
		r.fault("%s was lost: there is no such job", l.Key)
		return nil
	}
	if err != nil {
		return err
	}
	v, err := rt.Job(ctx, job)
	if err != nil {
		return err
	}
	got := outcome(v.State, v.Code, v.Output)
	r.found[got]++
	if got != want || !v.Ended {
		r.fault("%s is %s (completion tasks done: %t), expected %s", l.Key, got, v.Ended, want)
	}
	if len(v.DeadLetters) > 0 {
		r.fault("%s has %d dead letters: %s", l.Key, len(v.DeadLetters), v.DeadLetters[0].Message)
	}
	r.charge(l, want, charges)
	return nil
}

// outcome reads how an order ended from its job.
func outcome(state journal.JobState, code int, output []byte) orders.Outcome {
	var out struct {
		Status orders.Outcome `json:"status"`
	}
	switch {
	case state == journal.JobFailed && code == http.StatusPaymentRequired:
		return orders.Failed
	case state != journal.JobCompleted || json.Unmarshal(output, &out) != nil:
		return orders.Outcome(fmt.Sprintf("%s with code %d", state, code)) // none of the four
	}
	return out.Status
}

// charge checks that the order was charged once, the exact amount, or not at all.
func (r *report) charge(l *orders.Line, want orders.Outcome, charges []charge) {
	if !want.Charged() {
		if len(charges) > 0 {
			r.fault("%s was charged %d times, expected not at all", l.Key, len(charges))
		}
		return
	}
	if len(charges) != 1 {
		r.fault("%s was charged %d times, expected once", l.Key, len(charges))
		return
	}
	total, err := l.Input.Total()
	if err != nil {
		r.fault("%s: %v", l.Key, err)
		return
	}
	amount, ok := new(big.Rat).SetString(charges[0].Amount.String())
	if !ok || amount.Cmp(total) != 0 || charges[0].Currency != l.Input.Currency {
		r.fault("%s was charged %s %s, expected %s %s", l.Key, charges[0].Amount, charges[0].Currency,
			total.FloatString(orders.Places(l.Input.Currency)), l.Input.Currency)
	}
}

// books compares the payment service's counts with the orders.
func (r *report) books() {
	for _, b := range []struct {
		kind          string
		what          string
		applied, want int
	}{
		{"charges", "applied", r.counts["charges"].Applied, r.charged},
		{"charges", "refused", r.counts["charges"].Refused, r.expected[orders.Failed] + r.expected[orders.Invoiced]},
		{"reservations", "applied", r.counts["reservations"].Applied, r.expected[orders.Shipped]},
		{"reservations", "refused", r.counts["reservations"].Refused, r.expected[orders.Refunded]},
		{"shipments", "applied", r.counts["shipments"].Applied, r.expected[orders.Shipped]},
		{"refunds", "applied", r.counts["refunds"].Applied, r.expected[orders.Refunded]},
		{"invoices", "applied", r.counts["invoices"].Applied, r.expected[orders.Invoiced]},
	} {
		if b.applied != b.want {
			r.fault("%d %s %s, expected %d", b.applied, b.kind, b.what, b.want)
		}
	}
}
