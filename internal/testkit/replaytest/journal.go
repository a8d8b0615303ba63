package replaytest

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// Journal is everything that is stored of one job.
type Journal struct {
	Audited     *store.Stored // as the store gave it
	Header      replay.Header // of it, as Stored
	Stored      *replay.Stored
	Attachments *replay.Attachments
	Records     []journal.Record // main chain first, each chain by seq
}

// All yields the records.
func (j *Journal) All() iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for _, r := range j.Records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Verify verifies the journal, with its tables or as an export.
func (j *Journal) Verify(tables bool) *replay.Report {
	stored := j.Stored
	if !tables {
		stored = nil
	}
	r, err := replay.Verify(j.Header, stored, j.Attachments, j.All())
	if err != nil {
		panic(err) // All yields no error
	}
	return r
}

// Clone copies what Lie and tests change.
func (j *Journal) Clone() *Journal {
	c := *j
	c.Records = slices.Clone(j.Records)
	for i := range c.Records {
		c.Records[i].Body = slices.Clone(c.Records[i].Body)
	}
	beside := *j.Attachments
	beside.Payloads = maps.Clone(beside.Payloads)
	c.Attachments = &beside
	return &c
}

// Entries decodes all records.
func (j *Journal) Entries() []*journal.Entry {
	out := make([]*journal.Entry, len(j.Records))
	for i, r := range j.Records {
		e, err := journal.Decode(r)
		if err != nil {
			panic(fmt.Sprintf("record %d: %v", i, err))
		}
		out[i] = e
	}
	return out
}

// Lie lets change edit the decoded entries, and gives a journal of them whose
// bytes, hashes, bound heads and head are all in order: what a forger with the
// database and this program can do. Entries may be added and left out; the
// seqs of records follow those of the entries.
func (j *Journal) Lie(change func(entries []*journal.Entry) []*journal.Entry) *Journal {
	entries := change(j.Entries())
	c := *j
	c.Records = make([]journal.Record, len(entries))
	heads := make(map[journal.GUID]map[int64]journal.Digest)
	seal := func(i int) {
		e := entries[i]
		previous := journal.Genesis(j.Header.Space, j.Header.Job, j.Header.Generation, e.Chain)
		if i > 0 && entries[i-1].Chain == e.Chain {
			previous = c.Records[i-1].Hash
		}
		body := journal.Encode(e)
		c.Records[i] = journal.Record{
			Job: j.Header.Job, Chain: e.Chain, Seq: e.Seq, Body: body, Hash: journal.Next(previous, body),
		}
		if heads[e.Chain] == nil {
			heads[e.Chain] = make(map[int64]journal.Digest)
		}
		heads[e.Chain][e.Seq] = c.Records[i].Hash
	}
	for i, e := range entries {
		if !e.Chain.IsZero() {
			seal(i)
		}
	}
	for i, e := range entries {
		if !e.Chain.IsZero() {
			continue
		}
		if b := e.Bound; b != nil {
			if h, ok := heads[b.Chain][b.Head.Seq]; ok {
				b.Head.Hash = h
			}
		}
		seal(i)
		c.Header.Head = journal.Head{Seq: e.Seq, Hash: c.Records[i].Hash}
	}
	return &c
}

// Renumber gives the entries of the main chain the seqs 1…n.
func Renumber(entries []*journal.Entry) []*journal.Entry {
	n := int64(0)
	for _, e := range entries {
		if e.Chain.IsZero() {
			n++
			e.Seq = n
		}
	}
	return entries
}

// Reseal computes hashes and head of the records anew, whatever their bodies
// say now: for bodies that cannot be decoded any more.
func (j *Journal) Reseal() *Journal {
	for i := range j.Records {
		r := &j.Records[i]
		previous := journal.Genesis(j.Header.Space, j.Header.Job, j.Header.Generation, r.Chain)
		if i > 0 && j.Records[i-1].Chain == r.Chain {
			previous = j.Records[i-1].Hash
		}
		r.Hash = journal.Next(previous, r.Body)
		if r.Chain.IsZero() {
			j.Header.Head = journal.Head{Seq: r.Seq, Hash: r.Hash}
		}
	}
	return j
}
