package replay

import (
	"bytes"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/journal"
)

// note keeps what a check cannot prove here; the first note of a check stays.
func (a *auditor) note(c Check, text string) {
	if a.notes[c] == "" {
		a.notes[c] = text
	}
}

// finish compares the state at the end with the tables and writes the report.
func (a *auditor) finish() *Report {
	a.endChain()
	if !a.seen[journal.MainChain] {
		a.noEntries()
	}
	if a.blind == "" && a.blindEffects == "" {
		a.missingChains()
	}
	if a.blind == "" {
		a.openEnds()
		a.compare()
	}
	r := &Report{
		Header: a.h, State: a.job.State, Head: a.job.At, Digest: a.job.Digest(), First: a.lead,
		Counts: a.counts,
	}
	if other := a.twin.Digest(); other != r.Digest {
		a.report(V14, journal.MainChain, 0, "two replays gave the digests %s and %s", r.Digest, other)
		r.First = a.lead
	}
	r.Counts.Instances, r.Counts.Messages, r.Counts.Rows = len(a.job.Instances), len(a.job.Receipts), len(a.job.Rows)
	for _, c := range Checks {
		r.Checks = append(r.Checks, a.result(c))
	}
	a.listOpen(r)
	return r
}

// noEntries judges a job of which nothing was read: only a tombstone may have
// lost its entries (J7).
func (a *auditor) noEntries() {
	a.blinded(journal.MainChain, "the job has no entries here")
	switch {
	case a.stored != nil && a.stored.State == journal.JobExpired:
		a.blind = "only the tombstone is left"
		a.blindEffects = a.blind
	case a.h.Head.Seq > 0:
		a.report(V3, journal.MainChain, 0, "no entry is here, the stored head says %d", a.h.Head.Seq)
	default:
		a.report(V1, journal.MainChain, 0, "the job has no entries")
	}
}

// missingChains reports chains of effects that are bound or stored, but of
// which no entry was read (V3).
func (a *auditor) missingChains() {
	for _, g := range sortedGUIDs(a.bounds) {
		if b := a.bounds[g]; b.head.Seq > 0 && !a.seen[g] {
			a.report(V3, g, 0, "entry %d of the main chain binds %d entries of this chain, none is here", b.seq, b.head.Seq)
			a.blindEffects = "entries of effects are missing"
		}
	}
	if a.stored == nil {
		return
	}
	for _, g := range sortedGUIDs(a.stored.Rows) {
		if row := a.stored.Rows[g]; row.Effects.Seq > 0 && !a.seen[g] {
			a.report(V3, g, 0, "the request's row says %d entries of this chain, none is here", row.Effects.Seq)
			a.blindEffects = "entries of effects are missing"
		}
	}
}

// openEnds reports obligations that nothing would ever bring to an end: each
// has an open row (V10).
func (a *auditor) openEnds() {
	if a.short != "" {
		return
	}
	standing := make(map[string]bool, len(a.job.Rows))
	for _, r := range a.job.Rows {
		standing[r.Activity+" "+string(r.DAD)] = true
	}
	for _, key := range sortedKeys(a.job.Obligations) {
		if !standing[key.Activity+" "+string(key.DAD)] {
			a.report(V10, journal.MainChain, a.job.Obligations[key], "%s %s is open, but no row stands for it", key.Activity, key.DAD)
		}
	}
}

// overState lists the checks that need the state of the job, with what a blind
// spot leaves of them.
var overState = []Check{V4, V5, V6, V7, V10, V11, V12, V15}

// result gives the outcome of one check.
func (a *auditor) result(c Check) Result {
	r := Result{Check: c, Status: Proved, Violation: a.first[c], Note: a.notes[c]}
	blind := ""
	switch {
	case slices.Contains(overState, c):
		blind = a.blind
	case c == V8 || c == V9:
		blind = a.blindEffects
	case c == V14 && a.blind != "":
		blind = a.blind
	case c == V13:
		r.Status, r.Note = NotProved, "entries of this format version record no timers, waits or signals"
	}
	if (c == V1 || c == V2 || c == V16) && a.counts.Entries == 0 {
		blind = a.blind
	}
	if (c == V3 || c == V9) && blind == "" && r.Note != "" {
		r.Status = NotProved
	}
	if c == V12 && blind == "" && a.blindEffects != "" {
		r.Note = join(r.Note, "effects not looked at: "+a.blindEffects)
	}
	if blind != "" {
		r.Status, r.Note = NotProved, blind
	}
	if r.Violation != nil {
		r.Status = Violated
	}
	return r
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// listOpen lists what is still to be done (V7 reports missing tasks so).
func (a *auditor) listOpen(r *Report) {
	add := func(o Open) {
		if r.OpenCount++; len(r.Open) < MaxOpen {
			r.Open = append(r.Open, o)
		}
	}
	if a.job.ClosedAt > 0 && !a.job.Tasks {
		add(Open{What: "tasks", GUID: a.job.Closer, Since: a.job.ClosedAt})
	}
	guids := sortedGUIDs(a.job.Rows)
	slices.SortStableFunc(guids, func(x, y journal.GUID) int {
		if d := a.job.Rows[x].Origin - a.job.Rows[y].Origin; d != 0 {
			return int(d)
		}
		return bytes.Compare(x[:], y[:])
	})
	for _, g := range guids {
		row := a.job.Rows[g]
		add(Open{
			What: string(row.Kind), GUID: g, Activity: row.Activity, DAD: string(row.DAD),
			Turn: row.Turn, Try: row.Try, NextAt: row.NextAt, Held: row.Held, Since: row.Origin,
		})
	}
}
