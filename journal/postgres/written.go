package postgres

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// placed is an instance with its keys and its ledger before the batch.
type placed struct {
	*instanceWrite
	after collation.Instance
}

// placedColumns are the columns of new and of moved instances.
var placedColumns = listOf("placed", append([]field[placed]{
	uuidOf("job", func(x *placed) *journal.JobID { return &x.job }),
	knownColumn(func(x *placed) *jobWrite { return x.of }),
	textOf("activity", func(x *placed) *string { return &x.Key.Activity }),
	{name: "dad", make: uuids, put: func(c *column, x *placed) { c.uuid(x.Key.DAD.Key()) }},
	boolOf("is_join", func(x *placed) *bool { return &x.Join }),
	textOf("dad_text", func(x *placed) *collation.DAD { return &x.Key.DAD }),
	intOf("before", func(x *placed) *collation.ActivityLedger { return &x.Before }),
}, within(instanceColumns, func(x *placed) *collation.Instance { return &x.after })...)...)

// knownColumn is the number of a job as far as it is known, else NULL.
func knownColumn[T any](of func(*T) *jobWrite) field[T] {
	return field[T]{name: "known", make: ints, put: func(c *column, x *T) { c.someInt(known(of(x))) }}
}

// known returns the number of a job that the batch moves, 0 if it is not known.
func known(j *jobWrite) int64 {
	if j == nil {
		return 0
	}
	return j.n
}

// within returns the columns of a part of a T.
func within[T, P any](l list[P], part func(*T) *P) []field[T] {
	all := make([]field[T], len(l.fields))
	for i, f := range l.fields {
		all[i] = field[T]{name: f.name, make: f.make, put: func(c *column, x *T) { f.put(c, part(x)) }}
	}
	return all
}

func (i *instanceWrite) placed() *placed {
	return &placed{i, collation.Instance{Ledger: i.After, ResultSeq: i.ResultSeq, Code: i.Code, More: i.More}}
}

// moveColumns are the columns of the compound statement (C14). Those of the closing receipt are
// NULL if none closes.
var moveColumns = listOf("move",
	uuidOf("job", func(x *jobWrite) *journal.JobID { return &x.job }),
	knownColumn(func(x *jobWrite) *jobWrite { return x }),
	intOf("sem_before", func(x *jobWrite) *int64 { return &x.semBefore }),
	intOf("sem_after", func(x *jobWrite) *int64 { return &x.semAfter }),
	intOf("seq_before", func(x *jobWrite) *int64 { return &x.seqBefore }),
	intOf("seq_after", func(x *jobWrite) *int64 { return &x.seqAfter }),
	digestOf("hash", func(x *jobWrite) *journal.Digest { return &x.hash }),
	textOf("state", func(x *jobWrite) *journal.JobState { return &x.state }),
	field[jobWrite]{name: "closes", make: bools, put: func(c *column, x *jobWrite) { c.bool(x.closer != nil) }},
	field[jobWrite]{name: "close_seq", make: ints, put: func(c *column, x *jobWrite) {
		if x.closer != nil {
			c.int(x.closeSeq)
		} else { // a close that no plan predicted shows in closed_seq, and is refused there
			c.int(x.seqAfter)
		}
	}},
	intOf("tasks_seq", func(x *jobWrite) *int64 { return &x.tasksSeq }),
	ofCloser(uuidOf("guid", func(x *receiptWrite) *journal.GUID { return &x.GUID })),
	ofCloser(boolOf("fresh", func(x *receiptWrite) *bool { return &x.New })),
	ofCloser(intOf("before", func(x *receiptWrite) *collation.GUIDLedger { return &x.Before })),
	ofCloser(intOf("after", func(x *receiptWrite) *collation.GUIDLedger { return &x.After })),
	ofCloser(intOf("seq", func(x *receiptWrite) *int64 { return &x.Seq })),
	intOf("expires", func(x *jobWrite) *collation.Micros { return &x.expires }),
	ofGuard(textOf("was_state", func(x *store.Guard) *journal.JobState { return &x.State })),
	ofGuard(digestOf("was_hash", func(x *store.Guard) *journal.Digest { return &x.Head.Hash })),
)

// headColumns are the columns of a job of which only the head moves.
var headColumns = listOf("head",
	uuidOf("job", func(x *jobWrite) *journal.JobID { return &x.job }),
	knownColumn(func(x *jobWrite) *jobWrite { return x }),
	intOf("semaphore", func(x *jobWrite) *int64 { return &x.semBefore }),
	intOf("before", func(x *jobWrite) *int64 { return &x.seqBefore }),
	intOf("after", func(x *jobWrite) *int64 { return &x.seqAfter }),
	digestOf("hash", func(x *jobWrite) *journal.Digest { return &x.hash }),
	ofGuard(textOf("was_state", func(x *store.Guard) *journal.JobState { return &x.State })),
	ofGuard(digestOf("was_hash", func(x *store.Guard) *journal.Digest { return &x.Head.Hash })),
)

// ofGuard is a column of what a decision on a hot state rests on (W6), NULL after another one.
func ofGuard(f field[store.Guard]) field[jobWrite] {
	return partOf(func(x *jobWrite) **store.Guard { return &x.was }, f)
}

func ofCloser(f field[receiptWrite]) field[jobWrite] {
	return partOf(func(x *jobWrite) **receiptWrite { return &x.closer }, f)
}

// entryColumns are the columns of an entry.
var entryColumns = listOf("entry",
	uuidOf("job", func(x *entryWrite) *journal.JobID { return &x.job }),
	knownColumn(func(x *entryWrite) *jobWrite { return x.of }),
	uuidOf("chain", func(x *entryWrite) *journal.GUID { return &x.chain }),
	intOf("seq", func(x *entryWrite) *int64 { return &x.seq }),
	bytesOf("body", func(x *entryWrite) *[]byte { return &x.body }),
	digestOf("hash", func(x *entryWrite) *journal.Digest { return &x.hash }),
	bytesOf("mac", func(x *entryWrite) *[]byte { return &x.mac }).orNull(),
)

// guardColumns are the columns of a job that a decision on its hot state rests on (W6).
var guardColumns = listOf("guard",
	uuidOf("id", func(x *hotWrite) *journal.JobID { return &x.job }),
	textOf("state", func(x *hotWrite) *journal.JobState { return &x.State }),
	intOf("semaphore", func(x *hotWrite) *int64 { return &x.Semaphore }),
	intOf("seq", func(x *hotWrite) *int64 { return &x.Head.Seq }),
	digestOf("hash", func(x *hotWrite) *journal.Digest { return &x.Head.Hash }),
)
