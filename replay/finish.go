package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// note records what a check cannot prove here; only the first note of a check is kept.
func (a *auditor) note(c Check, text string) {
	if a.notes[c] == "" {
		a.notes[c] = text
	}
}

// finish compares the last state with the tables and writes the report.
func (a *auditor) finish() *Report {
	a.endChain()
	if !a.seen[journal.MainChain] {
		a.noEntries()
	}
	if a.unseen == "" && a.effectsUnseen == "" {
		a.missingChains()
	}
	if a.unseen == "" && a.effectsUnseen == "" {
		a.undosLaw()
		a.judgedLaw()
	}
	if a.unseen == "" {
		a.openEnds()
		a.compare()
		a.definitionLaw()
		if a.given.why != "" {
			a.note(V17, a.given.why)
		}
	}
	a.payloadLaw()
	r := &Report{
		Header: a.h, State: a.job.State, Head: a.job.At, Digest: a.job.Digest(), First: a.lead,
		Counts: a.counts, From: a.job.From, Copies: a.copies,
	}
	if a.tombstone() {
		r.State, r.KnownExpiredAt = journal.JobExpired, a.stored.KnownExpiredAt
	}
	if other := a.twin.Digest(); other != r.Digest {
		a.report(V14, journal.MainChain, 0, "two replays gave the digests %s and %s", r.Digest, other)
		r.First = a.lead
	}
	r.Broken, r.Differences, r.Unlisted = a.broken, a.differences, a.unlisted
	r.Counts.Instances, r.Counts.Messages, r.Counts.Rows = len(a.job.Instances), len(a.job.Receipts), len(a.job.Rows)
	r.Counts.Waits, r.Counts.Left, r.Counts.Chains = len(a.job.Waits), a.job.Left, len(a.job.Chains)
	r.Counts.Functions, r.Counts.Wakes = a.job.functions()
	for _, c := range Checks {
		r.Checks = append(r.Checks, a.result(c))
	}
	open := a.job.Open()
	r.OpenCount = len(open)
	r.Open = open[:min(len(open), MaxOpen)]
	return r
}

// tombstone says that nothing else is left of the job (J7).
func (a *auditor) tombstone() bool {
	return a.stored != nil && a.stored.State == journal.JobExpired
}

// noEntries judges a job without entries: only a tombstone may have lost them (J7).
func (a *auditor) noEntries() {
	a.cannotSee(journal.MainChain, "the job has no entries here")
	switch {
	case a.tombstone():
		a.unseen = "only the tombstone is left"
		a.effectsUnseen = a.unseen
	case a.h.Head.Seq > 0:
		a.report(V3, journal.MainChain, 0, "no entry is here, the stored head says %d", a.h.Head.Seq)
	default:
		a.report(V1, journal.MainChain, 0, "the job has no entries")
	}
}

// missingChains reports chains of effects that are bound or stored although none of their
// entries was read (V3).
func (a *auditor) missingChains() {
	for _, g := range sortedGUIDs(a.bounds) {
		if b := a.bounds[g]; b.head.Seq > 0 && !a.seen[g] {
			a.report(V3, g, 0, "entry %d of the main chain binds %d entries of this chain, none is here", b.seq, b.head.Seq)
			a.effectsUnseen = "entries of effects are missing"
		}
	}
	if a.stored == nil {
		return
	}
	for _, g := range sortedGUIDs(a.stored.Rows) {
		if row := a.stored.Rows[g]; row.Effects.Seq > 0 && !a.seen[g] {
			a.report(V3, g, 0, "the request's row says %d entries of this chain, none is here", row.Effects.Seq)
			a.effectsUnseen = "entries of effects are missing"
		}
	}
}

// openEnds reports obligations that nothing would ever end: each needs a row, a wait or a child
// (V10).
func (a *auditor) openEnds() {
	if a.short != "" {
		return
	}
	standing := make(map[collation.InstanceKey]bool, len(a.job.Rows))
	for _, r := range a.job.Rows {
		standing[r.key()] = true
	}
	for _, w := range a.job.Waits {
		standing[w.key()] = true
	}
	for _, c := range a.job.Children {
		standing[c.key()] = true
	}
	for _, g := range sortedGUIDs(a.job.Obligations) {
		o := a.job.Obligations[g]
		if !standing[collation.InstanceKey{Activity: o.Activity, DAD: o.DAD}] {
			a.report(V10, journal.MainChain, o.Since, "%s %s is open, but no row, wait or child stands for it", o.Activity, o.DAD)
		}
	}
}

// overState lists the checks that need the state of the job: a blind spot leaves them unproved.
var overState = []Check{V4, V5, V6, V7, V10, V11, V12, V13, V15, V17, V18, V19}

// unproved are the checks of which a note says that nothing of them is proved.
var unproved = []Check{V3, V9, V17, V18, V19}

// result gives the outcome of one check.
func (a *auditor) result(c Check) Result {
	r := Result{Check: c, Status: Proved, Violation: a.first[c], Note: a.notes[c]}
	blind := ""
	switch {
	case slices.Contains(overState, c):
		blind = a.unseen
	case c == V8 || c == V9:
		blind = a.effectsUnseen
	case c == V14 && a.unseen != "":
		blind = a.unseen
	}
	if (c == V1 || c == V2 || c == V16) && a.counts.Entries == 0 {
		blind = a.unseen
	}
	if slices.Contains(unproved, c) && blind == "" && r.Note != "" {
		r.Status = NotProved
	}
	if (c == V10 || c == V12) && blind == "" && a.effectsUnseen != "" {
		r.Note = join(r.Note, "effects not looked at: "+a.effectsUnseen)
	}
	r.Note = join(r.Note, a.outside(c))
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

// outside says which part of a check only other journals could prove.
func (a *auditor) outside(c Check) string {
	switch {
	case c == V10 && a.job.Left > 0:
		return fmt.Sprintf("%d messages left for other jobs or for waits: what became of them is not told here", a.job.Left)
	case c == V11 && a.external > 0:
		return fmt.Sprintf("%d interrupts came from outside", a.external)
	}
	return ""
}
