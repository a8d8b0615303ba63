package examples_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// service answers the n-th question, from 1, with answer(n).
func service(t *testing.T, answer func(n int64) (status int, body string)) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, body := answer(asked.Add(1))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func input(url string) string {
	return `{"order": "order-1", "every": "20ms", "url": ` + strconv.Quote(url) + `}`
}

// The loop continues after an error, an empty list and other charges, and ends with the charge.
// Every question has its own address.
func TestPollsUntilItIsThere(t *testing.T) {
	t.Parallel()
	s := open(t, "polling")
	url, asked := service(t, func(n int64) (int, string) {
		switch n {
		case 1:
			return http.StatusServiceUnavailable, ``
		case 2:
			return http.StatusOK, `null`
		case 3:
			return http.StatusOK, `[{"order": "another", "amount": 1}]`
		}
		return http.StatusOK, `[{"order": "another", "amount": 1}, {"order": "order-1", "amount": 12.50}]`
	})
	s.Begin("polling", "settle-1", input(url))
	require.JSONEq(t, `{"charge": {"order": "order-1", "amount": 12.5}, "asked": 4}`, s.Output("settle-1"))
	require.EqualValues(t, 4, asked.Load())
	require.Equal(t, []string{",0,0,0", ",0,1,0", ",0,2,0", ",0,3,0"}, s.Addresses("settle-1", "ask"))
	for _, i := range s.View("settle-1").Instances {
		if i.Key.Activity == "poll" && i.Ledger != 0 { // its own pass and three of the cycle (1.12)
			require.Equal(t, "001100000000004", i.Ledger.String())
		}
	}
}

// An answer that never comes ends with an error that names the limit.
func TestGivesUpAfterMax(t *testing.T) {
	t.Parallel()
	s := open(t, "polling")
	url, _ := service(t, func(int64) (int, string) { return http.StatusOK, `[]` })
	s.Begin("polling", "settle-2", `{"order": "order-1", "every": "0s", "url": `+strconv.Quote(url)+`}`)
	end := s.Failure("settle-2")
	require.Equal(t, journal.JobFailed, end.State)
	require.Equal(t, "cycle", end.Cause.Class)
	require.Contains(t, end.Cause.Message, "`max` is 100")
	require.Len(t, s.Addresses("settle-2", "ask"), 101)
}
