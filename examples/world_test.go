package examples_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/workers"
)

// play tests the flows of an example as a user's test does. On real servers they run in
// TestReadmes.
func play(t *testing.T, example string, scenario quiputest.Scenario, register ...func(*workers.Registry)) {
	t.Helper()
	t.Parallel()
	quiputest.Run(t, func(t testing.TB, w *quiputest.World) {
		w.DeployFiles(filepath.Join(example, "*.yaml"))
		w.Serve(append(register, workers.RegisterBuiltins)...)
		scenario(t, w)
	})
}

// gives waits for the job to complete with this output.
func gives(t testing.TB, job *quiputest.Job, output string) {
	t.Helper()
	end := job.End()
	require.Nil(t, end.Error)
	require.JSONEq(t, output, string(end.Output))
}

// ledgers returns the activity's instances in the job: where it was entered, skipped or is waited
// for, each with its digits.
func ledgers(job *quiputest.Job, activity string) (addresses, digits []string) {
	for _, i := range job.Info().Activities {
		if i.Activity == activity && i.Ledger != 0 { // 0: it is known, and was not entered
			addresses, digits = append(addresses, i.Address), append(digits, i.Ledger.String())
		}
	}
	slices.Sort(addresses)
	return addresses, digits
}

func addresses(job *quiputest.Job, activity string) []string {
	all, _ := ledgers(job, activity)
	return all
}

// children are those that the activity of the job has started, the oldest first.
func children(w *quiputest.World, job *quiputest.Job, activity string) (all []*quiputest.Job) {
	w.Settle()
	for _, j := range w.Jobs() {
		if strings.HasPrefix(j.Key, job.Key+"/"+activity+"-") {
			all = append(all, j)
		}
	}
	return all
}
