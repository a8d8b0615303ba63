package replay_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// big is an output that is stored beside its entry.
var big = []byte(`{"n":1,"text":"` + strings.Repeat("x", 1000) + `"}`)

// kept is a journal of two workers, where the output of the first is stored beside entry 4.
func kept() *replaytest.Journal {
	o, _ := options(recipes()["kept"])
	o.Payloads = map[journal.Digest][]byte{sha256.Sum256(big): big}
	o.Respond = func(activity string, _ int) *journal.Response {
		r := &journal.Response{Kind: journal.ResponseTerminal, Code: 200, Output: []byte(`1`)}
		if activity == "w1" {
			r.Output, r.Ref = nil, sha256.Sum256(big)
		}
		return r
	}
	return replaytest.Honest(o)
}

// besideCases change what stands beside the entries of kept. An export cannot tell what was left
// out of it.
var besideCases = map[string]struct {
	check  replay.Check
	seq    int64
	words  string
	export bool // found there, too
	change func(j *replaytest.Journal)
}{
	"V18 an output": {replay.V18, 4, "has the SHA-256", true, func(j *replaytest.Journal) {
		j.Attachments.Payloads[sha256.Sum256(big)] = replay.Payload{Sum: journal.Digest{1}, Body: big}
	}},
	"V18 an output that nothing names": {replay.V18, 0, "has the SHA-256", true, func(j *replaytest.Journal) {
		j.Attachments.Payloads[journal.Digest{7}] = replay.Payload{Sum: journal.Digest{8}}
	}},
	"V18 no output": {replay.V18, 4, "is not stored", false, func(j *replaytest.Journal) { clear(j.Attachments.Payloads) }},
	"V19 a definition": {replay.V19, 0, "has the SHA-256", true, func(j *replaytest.Journal) {
		j.Attachments.Definition = []byte(strings.Replace(string(j.Attachments.Definition), "w2.output", "w1.output", 1))
	}},
}

// Each change of what stands beside the entries is found by exactly its check (S10).
func TestS10CorruptBytesBesideTheEntries(t *testing.T) {
	t.Parallel()
	requireClean(t, kept(), true)
	for name, c := range besideCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := kept().Clone()
			c.change(j)
			requireOnly(t, j.Verify(true), c.check, c.seq, c.words)
			j.Attachments.Whole = false
			r := j.Verify(false)
			if c.export {
				requireOnly(t, r, c.check, c.seq, c.words)
				return
			}
			require.Nil(t, r.First)
			require.Equal(t, replay.NotProved, r.Result(c.check).Status)
		})
	}
}

// V19: the job's row carries the digest of the first entry, and an open job its definition.
func TestS10TheRowCarriesItsDefinition(t *testing.T) {
	t.Parallel()
	j := kept().Clone()
	j.Stored.Flow.Digest[0] ^= 1
	requireOnly(t, j.Verify(true), replay.V19, 0, "the job's row carries flow kept version 1")
	j = made("halfway").Clone()
	j.Attachments.Definition = nil
	requireOnly(t, j.Verify(true), replay.V19, 0, "is not stored, and the job is open")
	j = kept().Clone()
	j.Attachments.Definition = nil
	require.Nil(t, j.Verify(true).First)
}

// S10: an input without outputs and definitions says what it cannot prove.
func TestS10AnExportSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	j := kept().Clone()
	j.Attachments = nil
	r := j.Verify(false)
	require.Nil(t, r.First)
	require.Equal(t, "1 outputs that entries name are not in this input", r.Result(replay.V18).Note)
	require.Equal(t, "the flow's definition is not in this input", r.Result(replay.V19).Note)
	for _, c := range []replay.Check{replay.V17, replay.V18, replay.V19} {
		require.Equal(t, replay.NotProved, r.Result(c).Status, "%s", c)
	}
}

// What is beyond the bound is checked against its digest, and not kept.
func TestS10ReadBesideKeepsABoundedPart(t *testing.T) {
	t.Parallel()
	half := make([]byte, replay.MaxPayloads/2+1)
	b, err := replay.ReadAttachments(func(yield func(journal.Attachment, error) bool) {
		_ = yield(journal.Attachment{Definition: true, Body: []byte("f")}, nil) &&
			yield(journal.Attachment{Digest: journal.Digest{1}, Body: half}, nil) &&
			yield(journal.Attachment{Digest: journal.Digest{2}, Body: half}, nil)
	})
	require.NoError(t, err)
	require.Equal(t, []byte("f"), b.Definition)
	sum := journal.Digest(sha256.Sum256(half))
	require.NotNil(t, b.Payloads[journal.Digest{1}].Body)
	require.Equal(t, replay.Payload{Sum: sum}, b.Payloads[journal.Digest{2}])
	broken := errors.New("broken")
	_, err = replay.ReadAttachments(func(yield func(journal.Attachment, error) bool) {
		yield(journal.Attachment{}, broken)
	})
	require.ErrorIs(t, err, broken)
}
