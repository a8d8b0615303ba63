package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Digest is a deterministic digest over everything that was rebuilt, outputs
// excepted (V14): two replays of the same entries give the same.
func (j *Job) Digest() journal.Digest {
	h := hasher{sha256.New()}
	h.text("quipu-state-v1")
	h.text(j.Header.Space)
	h.bytes(j.Header.Job[:])
	h.number(j.Header.Generation)
	h.text(string(j.State))
	h.number(j.Semaphore)
	h.head(j.At)
	h.bytes(j.Closer[:])
	h.number(j.ClosedAt)
	h.bool(j.Tasks)
	h.number(int64(j.Close.Code))
	for _, key := range sortedKeys(j.Instances) {
		i := j.Instances[key]
		h.key(key)
		h.number(int64(i.Ledger))
		h.number(i.ResultSeq)
		h.number(int64(i.Code))
	}
	for _, key := range sortedKeys(j.Obligations) {
		h.key(key)
		h.number(j.Obligations[key])
	}
	j.digestMessages(h)
	return h.sum()
}

func (j *Job) digestMessages(h hasher) {
	for _, g := range sortedGUIDs(j.Receipts) {
		r := j.Receipts[g]
		h.bytes(g[:])
		h.number(int64(r.Ledger))
		h.text(string(r.Verdict))
		h.number(r.Seq)
		h.bytes(r.Row[:])
	}
	for _, g := range sortedGUIDs(j.Rows) {
		r := j.Rows[g]
		h.bytes(g[:])
		h.text(string(r.Kind))
		h.key(collation.InstanceKey{Activity: r.Activity, DAD: r.DAD})
		h.text(r.Topic)
		h.number(int64(r.Turn))
		h.number(int64(r.Try))
		h.number(r.NextAt)
		h.text(r.Held)
		h.number(r.Origin)
	}
	for _, g := range sortedGUIDs(j.Chains) {
		h.bytes(g[:])
		h.head(j.Chains[g])
	}
	for _, k := range sortedDigests(j.Effects) {
		f := j.Effects[k]
		h.bytes(k[:])
		h.bytes(f.Request[:])
		h.text(f.Name)
		h.text(f.Class)
		h.number(int64(f.N))
		h.text(string(f.State))
		h.bytes(f.Result[:])
	}
}

func sortedGUIDs[V any](m map[journal.GUID]V) []journal.GUID {
	return slices.SortedFunc(maps.Keys(m), func(a, b journal.GUID) int { return bytes.Compare(a[:], b[:]) })
}

func sortedDigests[V any](m map[journal.Digest]V) []journal.Digest {
	return slices.SortedFunc(maps.Keys(m), func(a, b journal.Digest) int { return bytes.Compare(a[:], b[:]) })
}

func sortedKeys[V any](m map[collation.InstanceKey]V) []collation.InstanceKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b collation.InstanceKey) int {
		return cmp.Or(cmp.Compare(a.Activity, b.Activity), cmp.Compare(a.DAD, b.DAD))
	})
}

// hasher writes length-prefixed fields, so that no two states read the same.
type hasher struct{ hash.Hash }

func (h hasher) bytes(b []byte) {
	h.number(int64(len(b)))
	h.Write(b)
}

func (h hasher) text(s string) { h.bytes([]byte(s)) }

func (h hasher) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func (h hasher) bool(b bool) {
	if b {
		h.number(1)
	} else {
		h.number(0)
	}
}

func (h hasher) key(k collation.InstanceKey) {
	h.text(k.Activity)
	h.text(string(k.DAD))
}

func (h hasher) head(d journal.Head) {
	h.number(d.Seq)
	h.bytes(d.Hash[:])
}

func (h hasher) sum() journal.Digest { return journal.Digest(h.Sum(nil)) }
