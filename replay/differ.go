package replay

import (
	"fmt"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// MaxDifferences bounds the differences that a report lists (S11).
const MaxDifferences = 1000

// The tables in which a job may differ, as differences name them.
const (
	TableJobs       = "jobs"
	TableInstances  = "instances"
	TableReceipts   = "receipts"
	TableDispatches = "dispatches"
	TableWaits      = "waits"
	TableResolved   = "resolved_waits"
	TableEffects    = "effects"
)

// Difference is one thing in the tables that is not what the entries give. One of Key, GUID and
// Effect names the row, by its table; of jobs there is one.
type Difference struct {
	journal.Difference
	Key    collation.InstanceKey
	GUID   journal.GUID
	Effect journal.Digest
}

// maxShown bounds a value that a difference shows, in bytes.
const maxShown = 200

// shown is a value as a difference shows it: the entry of a repair holds it, so it is cut between
// characters.
func shown(value any) string {
	s := fmt.Sprint(value)
	if len(s) <= maxShown {
		return s
	}
	end := maxShown
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// differs lists a difference and reports it as a violation. seq is 0, or the entry to which the
// tables point.
func (a *auditor) differs(c Check, seq int64, d Difference, format string, args ...any) {
	if len(a.differences) < MaxDifferences {
		a.differences = append(a.differences, d)
	} else {
		a.unlisted++
	}
	if a.first[c] == nil {
		a.violate(&Violation{Check: c, Seq: seq, Message: fmt.Sprintf(format, args...)})
	}
}

// of makes the difference of one column; column "": of a whole row.
func of(table, row, column string, stored, rebuilt any) Difference {
	return Difference{Difference: journal.Difference{
		Table: table, Row: row, Column: column, Stored: shown(stored), Journal: shown(rebuilt),
	}}
}

func ofInstance(k collation.InstanceKey, column string, stored, rebuilt any) Difference {
	d := of(TableInstances, k.Activity+" "+string(k.DAD), column, stored, rebuilt)
	d.Key = k
	return d
}

func ofMessage(table string, g journal.GUID, column string, stored, rebuilt any) Difference {
	d := of(table, g.String(), column, stored, rebuilt)
	d.GUID = g
	return d
}

func ofEffect(k journal.Digest, name, column string, stored, rebuilt any) Difference {
	d := of(TableEffects, name+" "+k.String(), column, stored, rebuilt)
	d.Effect = k
	return d
}
