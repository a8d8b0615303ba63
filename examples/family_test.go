package examples_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/quiputest"
)

func onboarding(w *quiputest.World, merchant, country string) *quiputest.Job {
	return w.Start("onboarding", merchant+"-1", map[string]string{"merchant": merchant, "country": country})
}

// check signals the result of an identity check.
func check(w *quiputest.World, merchant string, code int) {
	w.Send(quiputest.Signal{Topic: "identity.checked", Key: merchant, Code: code, Payload: map[string]string{"by": "Grace"}})
}

// After a failed child another one starts. The parent ends with its children's results, and the
// child that it does not await goes on (P6).
func TestOnboarding(t *testing.T) {
	play(t, "family", func(t testing.TB, w *quiputest.World) {
		job := onboarding(w, "ada", "DE")
		check(w, "ada", 422)
		children(w, job, "identity")[0].Fails(422)
		check(w, "ada", 200)
		var out map[string]json.RawMessage
		job.Output(&out)
		checks, surveys := children(w, job, "identity"), children(w, job, "survey")
		require.Len(t, checks, 2)
		require.Len(t, surveys, 1)
		gives(t, checks[1], `{"checked_by": "Grace"}`)
		gives(t, job, `{"merchant": "ada", "checked_by": "Grace", "account": {"number": "DE-ada"}, "survey": {"id": "`+surveys[0].Key+`"}}`)
		survey := surveys[0].Info()
		require.Equal(t, journal.JobOpen, survey.State)
		require.False(t, survey.Parent.Awaited)
	})
}

// A transition takes the error of a child, and the activity after its success is not reached.
func TestAccountRefused(t *testing.T) {
	play(t, "family", func(t testing.TB, w *quiputest.World) {
		job := onboarding(w, "luis", "BR")
		check(w, "luis", 200)
		gives(t, job, `{"merchant": "luis", "checked_by": "Grace", "account": null, "survey": null}`)
		children(w, job, "account")[0].Fails(422)
		require.Equal(t, []string{",0^4"}, addresses(job, "by_hand"))
		require.Empty(t, children(w, job, "survey"))
	})
}

// An interrupt that descends ends the children that the parent awaits; another leaves them alone:
// they go on.
func TestInterrupts(t *testing.T) {
	play(t, "family", func(t testing.TB, w *quiputest.World) {
		mei, zoe := onboarding(w, "mei", "NL"), onboarding(w, "zoe", "NL")
		of, alone := children(w, mei, "identity")[0], children(w, zoe, "identity")[0]
		mei.Interrupt(quiputest.Interrupt{Reason: "withdrawn", Descend: true})
		for _, job := range []*quiputest.Job{mei, of} {
			require.Equal(t, "withdrawn", job.Fails(410).Message, job.Key)
			require.Equal(t, journal.JobInterrupted, job.State(), job.Key)
			require.Empty(t, job.Info().Waits, job.Key)
		}
		zoe.Interrupt(quiputest.Interrupt{})
		zoe.Fails(410)
		check(w, "zoe", 200)
		gives(t, alone, `{"checked_by": "Grace"}`)
	})
}
