package store

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// W2: the ports are small. A handful of methods write: Commit has all that is decided, the others
// are one statement each, or upkeep. Every other method of the ports reads, or opens and closes.
func TestW2AHandfulOfMethodsWrites(t *testing.T) {
	t.Parallel()
	jobs := []string{"Commit", "Lease", "Keep", "HandBack", "Claim", "Expire", "Retire", "Prune"}
	require.LessOrEqual(t, len(jobs), 8)
	writes := slices.Concat(jobs,
		[]string{"OpenSession", "Renew", "End"},                                                 // of sessions (W8)
		[]string{"Migrate", "Deploy", "Activate", "SetExpireDefault", "MarkSchedule", "Extend"}, // of the space
	)
	others := []string{
		"Committer", "Join", "Body", "Load", "More", "Rollback", "Released", "Session", "Close", // transactions, in which Commit writes
		"Due", "Announced", "Late", "Publications", "Flow", "ActiveFlow", "ExpireDefault", "Letter", "Epoch",
		"Input", "Effects", "Pauses",
		"Processes", "Silent", "ID", "Next", "Engines", "Killers", "Lost", "Held",
		"FindJob", "Job", "Ended", "Outcomes", "DeadLetters", "JobEffects", "FindEffect", "Schedules",
		"Space", "AuditJobs", "Audit",
	}
	var have []string
	for _, port := range []reflect.Type{
		reflect.TypeFor[Store](), reflect.TypeFor[Committer](), reflect.TypeFor[Tx](), reflect.TypeFor[Session](),
	} {
		for i := range port.NumMethod() {
			have = append(have, port.Method(i).Name)
		}
	}
	slices.Sort(have)
	want := slices.Concat(writes, others)
	slices.Sort(want)
	require.Equal(t, want, slices.Compact(have), "say of a new method what it does, and whether Commit could do it")
}
