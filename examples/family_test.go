package examples_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// check signals the result of an identity check.
func check(t *testing.T, s *Space, merchant string, opts ...quipu.SignalOption) {
	t.Helper()
	_, err := s.Signal(t.Context(), "identity.checked", merchant, map[string]string{"by": "Grace"}, opts...)
	require.NoError(t, err)
}

// child waits for the n-th child, from 1, that the activity of the parent starts.
func child(s *Space, parent, activity string, n int) (key string) {
	s.Until(parent, activity, func(*store.JobView) bool {
		keys := s.Keys(parent + "/" + activity + "-")
		if len(keys) < n {
			return false
		}
		key = keys[n-1]
		return true
	})
	return key
}

// After a failed child another one starts. The parent ends with its children's results, and the
// child that it does not await goes on (P6).
func TestOnboarding(t *testing.T) {
	t.Parallel()
	s := open(t, "family")
	s.Begin("onboarding", "ada-1", `{"merchant": "ada", "country": "DE"}`)
	check(t, s, "ada", quipu.Code(422))
	first := child(s, "ada-1", "identity", 1)
	end := s.Failure(first)
	require.Equal(t, journal.JobFailed, end.State)
	require.Equal(t, 422, end.Code)
	check(t, s, "ada")
	second := child(s, "ada-1", "identity", 2)
	require.JSONEq(t, `{"checked_by": "Grace"}`, s.Output(second))
	last := child(s, "ada-1", "survey", 1)
	require.JSONEq(t, `{
		"merchant": "ada", "checked_by": "Grace", "account": {"number": "DE-ada"}, "survey": {"id": "`+last+`"}
	}`, s.Output("ada-1"))
	require.Len(t, s.Keys("ada-1/identity-"), 2)

	survey := s.View(last)
	require.Equal(t, journal.JobOpen, survey.State)
	require.NotNil(t, survey.Parent)
	require.False(t, survey.Parent.Awaited)
}

// A transition takes the error of a child, and the activity after its success is not reached.
func TestAccountRefused(t *testing.T) {
	t.Parallel()
	s := open(t, "family")
	s.Begin("onboarding", "luis-1", `{"merchant": "luis", "country": "BR"}`)
	check(t, s, "luis")
	require.JSONEq(t, `{"merchant": "luis", "checked_by": "Grace", "account": null, "survey": null}`, s.Output("luis-1"))
	require.Equal(t, 422, s.Failure(child(s, "luis-1", "account", 1)).Code)
	require.Equal(t, []string{",0^4"}, s.Addresses("luis-1", "by_hand"))
	require.Empty(t, s.Keys("luis-1/survey-"))
}

// An interrupt that descends ends the children that the parent awaits.
func TestInterruptDescends(t *testing.T) {
	t.Parallel()
	s := open(t, "family")
	s.Begin("onboarding", "mei-1", `{"merchant": "mei", "country": "NL"}`)
	key := child(s, "mei-1", "identity", 1)
	_, err := s.Interrupt(t.Context(), "mei-1", quipu.Reason("withdrawn"), quipu.Descend(true))
	require.NoError(t, err)
	for _, key := range []string{"mei-1", key} {
		end := s.Failure(key)
		require.Equal(t, journal.JobInterrupted, end.State, key)
		require.Equal(t, 410, end.Code, key)
		require.Equal(t, "withdrawn", end.Cause.Message, key)
		require.Empty(t, s.View(key).Waits, key)
	}
}

// An interrupt that does not descend leaves the children alone: they go on.
func TestInterruptAlone(t *testing.T) {
	t.Parallel()
	s := open(t, "family")
	s.Begin("onboarding", "zoe-1", `{"merchant": "zoe", "country": "NL"}`)
	key := child(s, "zoe-1", "identity", 1)
	require.True(t, strings.HasPrefix(key, "zoe-1/identity-"))
	_, err := s.Interrupt(t.Context(), "zoe-1")
	require.NoError(t, err)
	require.Equal(t, journal.JobInterrupted, s.Failure("zoe-1").State)
	check(t, s, "zoe")
	require.JSONEq(t, `{"checked_by": "Grace"}`, s.Output(key))
}
