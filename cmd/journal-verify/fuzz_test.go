package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/journal/export"
)

// FuzzFile: any export is proved, violated or unreadable. The exit code says which, and the
// output is one object for each job, the same each time.
func FuzzFile(f *testing.F) {
	for _, j := range jobs(2) {
		var b bytes.Buffer
		w := export.NewWriter(&b)
		require.NoError(f, w.Begin(export.Header{
			Space: j.Header.Space, Job: j.Header.Job, Generation: j.Header.Generation, Key: j.Header.Key,
			Head: j.Header.Head, Flow: j.Header.Flow,
		}))
		for _, rec := range j.Records {
			require.NoError(f, w.Write(rec))
		}
		require.NoError(f, w.Flush())
		f.Add(b.Bytes())
	}
	f.Add([]byte("{\"format\":\"quipu-export-v3\"}\n"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		var outcomes []outcome
		verifyFile(t.Context(), "file", bytes.NewReader(file), func(o outcome) { outcomes = append(outcomes, o) })
		require.NotEmpty(t, outcomes, "an empty file is unreadable")
		for i, o := range outcomes {
			require.Equal(t, o.err == nil, o.report != nil)
			require.True(t, o.err == nil || i == len(outcomes)-1, "a line that cannot be read ends the file")
		}
		play := func() (int, string) {
			var out, said bytes.Buffer
			code := run(context.Background(), []string{"--json", "-"},
				cli.Streams{In: bytes.NewReader(file), Out: &out, Err: &said}, nil)
			return code, out.String()
		}
		code, text := play()
		again, same := play()
		require.Equal(t, code, again)
		require.Equal(t, text, same)
		results := map[string]bool{}
		objects := 0
		for d := json.NewDecoder(bytes.NewReader([]byte(text))); d.More(); objects++ {
			var v jobView
			require.NoError(t, d.Decode(&v))
			results[v.Result] = true
		}
		want := 0
		switch {
		case results["violated"]:
			want = 1
		case results["unreadable"]:
			want = 2
		}
		require.Equal(t, want, code, text)
		require.Equal(t, len(outcomes), objects)
	})
}
