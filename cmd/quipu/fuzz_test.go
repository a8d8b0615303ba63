package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// FuzzStartLines: each line of `quipu start -` is one job or refused with its
// number; what is taken is one JSON object with what was in it.
func FuzzStartLines(f *testing.F) {
	for _, seed := range []string{
		"{\"flow\":\"a\",\"key\":\"k\",\"input\":{\"n\":1}}\r\n\n{\"flow\":\"a\"}", `{"flow":"a"}{"flow":"b"}`, `{"flow":"a","colour":1}`, `{"key":"k"}`, `[]`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("\n")) >= quipu.MaxStarts {
			return // a full batch is started, which needs a server
		}
		var said bytes.Buffer
		s := &starter{app: &app{streams: cli.Streams{Err: &said}}}
		require.NoError(t, s.read(t.Context(), bufio.NewReaderSize(bytes.NewReader(text), 16)))
		lines := strings.Split(string(text), "\n")
		for i, r := range s.requests {
			line := lines[s.numbers[i]-1]
			require.True(t, json.Valid([]byte(line)), "line %d was taken: %q", s.numbers[i], line)
			require.NotEmpty(t, r.Flow)
			require.NotEmpty(t, r.Input)
		}
		require.Equal(t, s.Refused, strings.Count(said.String(), "\n"))
	})
}

// FuzzIDs: keys are the lines as they are; ids of dead letters are positive
// numbers, or refused as usage.
func FuzzIDs(f *testing.F) {
	f.Add("7\n 8 \n\n9\r\n")
	f.Add("-1\n")
	f.Add("9223372036854775808")
	f.Fuzz(func(t *testing.T, in string) {
		a := &app{streams: cli.Streams{In: strings.NewReader(in)}}
		keys, err := a.keys([]string{"-"})
		if err == nil {
			for _, key := range keys {
				require.True(t, key != "" && len(key) <= quipu.MaxKey+2 && !strings.Contains(key, "\n"))
				require.Contains(t, in, key)
			}
		}
		a.streams.In = strings.NewReader(in)
		ids, refused := a.numbers([]string{"-"})
		if refused == nil {
			require.NoError(t, err)
			require.Len(t, ids, len(keys))
			for _, id := range ids {
				require.Positive(t, id)
			}
		}
	})
}

// FuzzDigits: every ledger is shown with all its digits.
func FuzzDigits(f *testing.F) {
	f.Add(int64(collation.TriggerBorn))
	f.Add(int64(201_100_000_000_003))
	f.Fuzz(func(t *testing.T, n int64) {
		l := journal.Ledger(n)
		if n < 0 || l >= journal.MaxLedger {
			return
		}
		for _, at := range [][]int{ofActivity, ofMessage} {
			require.Equal(t, l.String(), strings.ReplaceAll(grouped(l, at), " ", ""))
		}
	})
}
