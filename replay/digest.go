package replay

import (
	"bufio"
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

// Digest covers the whole rebuilt state except outputs (V14): two replays of the same entries
// give the same digest.
func (j *Job) Digest() journal.Digest {
	h := newHasher()
	h.text("quipu-state-v1")
	h.text(j.Header.Space)
	h.bytes(j.Header.Job[:])
	h.number(j.Header.Generation)
	h.text(string(j.State))
	h.number(j.Semaphore)
	h.head(j.At)
	h.bytes(j.Closer[:])
	h.number(j.ClosedAt)
	h.bool(j.TasksAt > 0)
	h.number(int64(j.Close.Code))
	if p := j.Parent; p != nil {
		h.bytes(p.Job[:])
		h.key(collation.InstanceKey{Activity: p.Activity, DAD: collation.DAD(p.DAD)})
		h.bytes(p.Leg1[:])
		h.number(int64(p.Turn))
		h.bool(p.Awaited)
		h.number(int64(p.Depth))
	}
	if f := j.From; f != nil {
		h.bytes(journal.EncodeFrom(f))
	}
	h.bytes(j.Next[:])
	h.number(int64(j.Left))
	j.digestInstances(h)
	j.digestMessages(h)
	j.digestOpen(h)
	j.digestPauses(h)
	return h.sum()
}

func (j *Job) digestInstances(h hasher) {
	h.number(int64(len(j.Instances)))
	for _, key := range sortedKeys(j.Instances) {
		i := j.Instances[key]
		h.key(key)
		h.number(int64(i.Ledger))
		h.recorded(&i.Recorded)
		h.bytes(i.Leg1[:])
		h.bool(i.Pivot)
		h.bool(i.Repeat)
		for _, n := range [...]int{i.Open, i.Count, i.Parallel, i.Turn, i.Attempt} {
			h.number(int64(n))
		}
		h.bytes(i.Child[:])
	}
	h.number(int64(len(j.Passes)))
	for _, key := range sortedKeys(j.Passes) {
		h.key(key)
		h.recorded(j.Passes[key])
	}
}

func (j *Job) digestMessages(h hasher) {
	h.number(int64(len(j.Receipts)))
	for _, g := range sortedGUIDs(j.Receipts) {
		r := j.Receipts[g]
		h.bytes(g[:])
		h.number(int64(r.Ledger))
		h.text(string(r.Verdict))
		h.number(r.Seq)
		h.bytes(r.Row[:])
		h.text(string(r.Message))
	}
	h.number(int64(len(j.Chains)))
	for _, g := range sortedGUIDs(j.Chains) {
		h.bytes(g[:])
		h.head(j.Chains[g])
	}
	h.number(int64(len(j.Effects)))
	for _, k := range sortedDigests(j.Effects) {
		f := j.Effects[k]
		h.bytes(k[:])
		h.bytes(f.Request[:])
		h.text(f.Name)
		h.text(f.Position)
		h.bool(f.Voided)
		h.text(f.Class)
		h.number(int64(f.N))
		h.text(string(f.State))
		h.bytes(f.Result[:])
	}
	h.number(int64(len(j.Signals)))
	for _, c := range slices.SortedFunc(maps.Keys(j.Signals), func(a, b Consumed) int {
		return cmp.Or(bytes.Compare(a.Wait[:], b.Wait[:]), bytes.Compare(a.Signal[:], b.Signal[:]))
	}) {
		h.bytes(c.Wait[:])
		h.bytes(c.Signal[:])
		h.number(j.Signals[c])
	}
}

// digestPauses covers what durable functions wait for, and what has come.
func (j *Job) digestPauses(h hasher) {
	h.number(int64(len(j.Pauses)))
	for _, g := range sortedGUIDs(j.Pauses) {
		p := j.Pauses[g]
		h.bytes(g[:])
		h.bytes(p.Request[:])
		h.key(collation.InstanceKey{Activity: p.Activity, DAD: p.DAD})
		h.text(string(p.Kind))
		h.text(p.Name)
		h.text(p.Position)
		h.bool(p.Named)
		h.bool(p.Came)
		h.bool(p.ByTimeout)
		for _, n := range [...]int64{p.Since, p.Taken, p.Due} {
			h.number(n)
		}
	}
	h.number(int64(len(j.Undos)))
	for _, g := range sortedGUIDs(j.Undos) {
		h.bytes(g[:])
		h.number(j.Undos[g])
	}
}

// digestOpen covers what is still open.
func (j *Job) digestOpen(h hasher) {
	h.number(int64(len(j.Obligations)))
	for _, g := range sortedGUIDs(j.Obligations) {
		o := j.Obligations[g]
		h.bytes(g[:])
		h.key(collation.InstanceKey{Activity: o.Activity, DAD: o.DAD})
		h.number(o.Since)
	}
	h.number(int64(len(j.Rows)))
	for _, g := range sortedGUIDs(j.Rows) {
		r := j.Rows[g]
		h.bytes(g[:])
		h.text(string(r.Kind))
		h.key(r.key())
		h.text(r.Topic)
		h.number(int64(r.Element))
		h.number(int64(r.Turn))
		h.number(int64(r.Attempt))
		h.number(r.NextAt)
		h.text(r.Held)
		h.bytes(r.Input[:])
		h.number(r.Origin)
		h.bool(r.Outside)
		h.number(int64(len(r.Pauses)))
		for _, p := range r.Pauses {
			h.bytes(p[:])
		}
	}
	h.number(int64(len(j.Waits)))
	for _, g := range sortedGUIDs(j.Waits) {
		w := j.Waits[g]
		h.bytes(g[:])
		h.key(w.key())
		h.text(w.Topic)
		h.text(w.Key)
		h.bool(w.Repeat)
		h.number(int64(w.Passed))
		h.number(int64(w.Last))
		h.bytes(w.Request[:])
		h.number(w.Origin)
	}
	h.number(int64(len(j.Children)))
	for _, g := range sortedGUIDs(j.Children) {
		c := j.Children[g]
		h.bytes(g[:])
		h.key(c.key())
		h.bytes(c.Request[:])
		h.number(int64(c.Turn))
		h.number(c.At)
		h.number(c.Origin)
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

// hasher writes length-prefixed fields, so that different states give different bytes.
type hasher struct {
	*bufio.Writer
	sha hash.Hash
}

func newHasher() hasher {
	sha := sha256.New()
	return hasher{bufio.NewWriterSize(sha, 256), sha}
}

func (h hasher) bytes(b []byte) {
	h.number(int64(len(b)))
	_, _ = h.Write(b) // a hash takes everything
}

func (h hasher) text(s string) {
	h.number(int64(len(s)))
	_, _ = h.WriteString(s)
}

func (h hasher) number(n int64) {
	_, _ = h.Write(binary.BigEndian.AppendUint64(h.AvailableBuffer(), uint64(n)))
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

func (h hasher) recorded(r *Recorded) {
	h.number(r.ResultSeq)
	h.number(int64(r.Code))
}

func (h hasher) head(d journal.Head) {
	h.number(d.Seq)
	h.bytes(d.Hash[:])
}

func (h hasher) sum() journal.Digest {
	_ = h.Flush()
	return journal.Digest(h.sha.Sum(nil))
}
