package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/replay"
)

// spaceView is the JSON of the space's own chain.
type spaceView struct {
	Space   string      `json:"space"`
	Chain   string      `json:"chain"`  // "space"
	Result  string      `json:"result"` // proved, violated
	Entries int         `json:"entries"`
	Head    headView    `json:"head"`
	Checks  []checkView `json:"checks"`
}

// verifySpace verifies the chain of the space itself and prints the outcome, if it has entries.
func verifySpace(ctx context.Context, r reader, p printer) (code int, err error) {
	chain, err := r.SpaceChain(ctx)
	if err != nil {
		return exitUnreadable, fmt.Errorf("read the chain of the space: %w", err)
	}
	if chain.Head.Seq == 0 && len(chain.Entries) == 0 {
		return exitProved, nil
	}
	report := replay.VerifySpace(chain)
	if report.Violated() {
		code = exitViolated
	}
	return code, p.space(chain.Name, report)
}

func (l *lines) space(name string, r *replay.SpaceReport) error {
	v := spaceView{Space: name, Chain: "space", Result: "proved", Entries: r.Entries, Head: headView{r.Head.Seq, r.Head.Hash.String()}}
	if r.Violated() {
		v.Result = "violated"
	}
	for _, c := range r.Checks {
		v.Checks = append(v.Checks, viewCheck(c))
	}
	return l.enc.Encode(v)
}

func (t *table) space(name string, r *replay.SpaceReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe chain of space %s itself, %d entries:\n", name, r.Entries)
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-4s  %-30s  %s\n", c.Check, c.Check.Title(), c.Status)
		if c.Violation != nil {
			fmt.Fprintf(&b, "    %s\n", c.Violation)
		}
	}
	return t.write(b.String())
}
