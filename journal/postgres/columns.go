package postgres

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
)

// lists are the lists of columns, under the names that statements use. A column that is added to
// a list is in all its statements, written and read.
var lists = map[string]interface {
	names() string
	reads(alias string) string
	placeholder(n int) string
	sets(from string) string
}{
	"row": rowColumns, "chain": chainColumns, "moved": movedColumns,
	"job": jobColumns, "instance": instanceColumns, "wait": waitColumns, "effect": effectColumns,
	"placed": placedColumns, "move": moveColumns, "head": headColumns, "entry": entryColumns, "guard": guardColumns,
}

// How many columns are read of each; other columns of a statement come after them.
var (
	rowWidth, chainWidth, jobWidth        = rowColumns.width(), chainColumns.width(), jobColumns.width()
	instanceWidth, waitWidth, effectWidth = instanceColumns.width(), waitColumns.width(), effectColumns.width()
	readInstance, readWait                = instanceColumns.of, waitColumns.of // their columns read any value
)

// rowColumns are the columns of a dispatch row.
var rowColumns = listOf("row",
	uuidOf("guid", func(x *collation.Row) *journal.GUID { return &x.GUID }).asKey(),
	uuidOf("job", func(x *collation.Row) *journal.JobID { return &x.Job }).asKey(),
	textOf("kind", func(x *collation.Row) *journal.MessageKind { return &x.Kind }),
	textOf("activity", func(x *collation.Row) *string { return &x.Activity }),
	textOf("dad", func(x *collation.Row) *collation.DAD { return &x.DAD }),
	textOf("topic", func(x *collation.Row) *string { return &x.Topic }),
	intOf("element", func(x *collation.Row) *int { return &x.Element }),
	bytesOf("body", func(x *collation.Row) *[]byte { return &x.Body }).orNull(),
	intOf("next_at", func(x *collation.Row) *collation.Micros { return &x.NextAt }).orNull(),
	textOf("held", func(x *collation.Row) *string { return &x.Held }).orNull(),
	boolOf("dead", func(x *collation.Row) *bool { return &x.Dead }),
	intOf("publication", func(x *collation.Row) *int { return &x.Publication }),
	intOf("published_at", func(x *collation.Row) *collation.Micros { return &x.PublishedAt }).orNull(),
	intOf("turn", func(x *collation.Row) *int { return &x.Turn }),
	intOf("turn_sent", func(x *collation.Row) *int { return &x.TurnSent }),
	intOf("attempt", func(x *collation.Row) *int { return &x.Attempt }),
	intOf("runs", func(x *collation.Row) *int { return &x.Runs }),
	textOf("holder", func(x *collation.Row) *string { return &x.Holder }).orNull(),
	intOf("session", func(x *collation.Row) *int64 { return &x.Session }).orNull(),
	intOf("fence", func(x *collation.Row) *int64 { return &x.Fence }),
	intOf("within_at", func(x *collation.Row) *collation.Micros { return &x.WithinAt }).orNull(),
	intOf("effects_seq", func(x *collation.Row) *int64 { return &x.Effects.Seq }),
	digestOf("effects_hash", func(x *collation.Row) *journal.Digest { return &x.Effects.Hash }).
		nullIf(func(x *collation.Row) bool { return x.Effects.Seq == 0 }),
	intOf("origin", func(x *collation.Row) *int64 { return &x.Origin }),
	uuidOf("sender", func(x *collation.Row) *journal.JobID { return &x.Sender }).orNull(),
	pausesColumn,
	boolOf("undo", func(x *collation.Row) *bool { return &x.Undo }),
	bytesOf("input", func(x *collation.Row) *[]byte { return &x.Input }).orNull(),
	intOf("rev", func(x *collation.Row) *int64 { return &x.Rev }),
)

// pausesColumn holds what a suspended function waits for.
var pausesColumn = field[collation.Row]{
	name: "pauses", make: byteas,
	put: func(c *column, x *collation.Row) { c.someBytes(encodePauses(x.Pauses)) },
	get: func(v row, i int, x *collation.Row) (err error) {
		x.Pauses, err = decodePauses(v[i])
		return err
	},
}

// readRow reads the columns of one dispatch row. Pauses that cannot be read are errCorrupt.
func readRow(v row) (*collation.Row, error) {
	x := &collation.Row{}
	if err := rowColumns.read(v, x); err != nil {
		return nil, fmt.Errorf("job %s: %w", x.Job, err)
	}
	return x, nil
}

// chainColumns are the columns of a dispatch row that effects read, movedColumns those that they
// change.
var (
	chainColumns = rowColumns.pick("chain",
		"job", "guid", "kind", "activity", "dad", "topic", "next_at", "held", "dead", "turn", "turn_sent", "attempt", "runs",
		"holder", "session", "fence", "effects_seq", "effects_hash", "undo", "rev")
	movedColumns = rowColumns.pick("moved",
		"job", "guid", "next_at", "held", "dead", "turn_sent", "runs", "holder", "session", "fence",
		"effects_seq", "effects_hash", "undo")
)

// jobColumns are the columns of a job's header.
var jobColumns = listOf("job",
	uuidOf("id", func(x *collation.Job) *journal.JobID { return &x.ID }),
	textOf("key", func(x *collation.Job) *string { return &x.Key }).asKey(),
	intOf("generation", func(x *collation.Job) *int64 { return &x.Generation }),
	textOf("flow_name", func(x *collation.Job) *string { return &x.Flow.Name }),
	textOf("flow_version", func(x *collation.Job) *string { return &x.Flow.Version }),
	digestOf("flow_digest", func(x *collation.Job) *journal.Digest { return &x.Flow.Digest }),
	textOf("state", func(x *collation.Job) *journal.JobState { return &x.State }),
	intOf("semaphore", func(x *collation.Job) *int64 { return &x.Semaphore }),
	intOf("head_seq", func(x *collation.Job) *int64 { return &x.Head.Seq }),
	digestOf("head_hash", func(x *collation.Job) *journal.Digest { return &x.Head.Hash }),
	intOf("started", func(x *collation.Job) *collation.Micros { return &x.Started }),
	field[collation.Job]{
		name: "tags", make: texts,
		put: func(c *column, x *collation.Job) { c.text(strings.Join(x.Tags, "\n")) },
		get: func(v row, i int, x *collation.Job) error { x.Tags = v.lines(i); return nil },
	},
	textOf("trace", func(x *collation.Job) *string { return &x.Trace }),
	ofParent(textOf("parent_space", func(x *journal.Parent) *string { return &x.Space })),
	ofParent(uuidOf("parent_job", func(x *journal.Parent) *journal.JobID { return &x.Job })),
	ofParent(textOf("parent_activity", func(x *journal.Parent) *string { return &x.Activity })),
	ofParent(textOf("parent_dad", func(x *journal.Parent) *string { return &x.DAD })),
	ofParent(uuidOf("parent_leg1", func(x *journal.Parent) *journal.GUID { return &x.Leg1 })),
	ofParent(intOf("parent_turn", func(x *journal.Parent) *int { return &x.Turn })),
	ofParent(boolOf("parent_awaited", func(x *journal.Parent) *bool { return &x.Awaited })),
	ofParent(intOf("parent_depth", func(x *journal.Parent) *int { return &x.Depth })),
	// What the row has of the origin, the column origin has, too: it is read last, and counts.
	ofFrom(uuidOf("root", func(x *journal.From) *journal.JobID { return &x.Root }).orNull()),
	ofFrom(partOf(func(x *journal.From) **journal.Fork {
		return &x.Fork
	}, uuidOf("forked", func(x *journal.Fork) *journal.JobID { return &x.Job }))),
	field[collation.Job]{
		name: "origin", make: byteas,
		put: func(c *column, x *collation.Job) {
			if x.From == nil {
				c.null()
			} else {
				c.bytes(journal.EncodeFrom(x.From))
			}
		},
		get: func(v row, i int, x *collation.Job) (err error) {
			if x.From, err = readFrom(v, i); err != nil {
				x.State = journal.JobQuarantined // it is unknown what was done before, so nothing more is done (J1)
			}
			return err
		},
	},
)

// readFrom reads what a job resumes, nil if nothing: errCorrupt.
func readFrom(v row, i int) (*journal.From, error) {
	if v.null(i) {
		return nil, nil
	}
	from, err := journal.DecodeFrom(v.bytes(i))
	if err != nil {
		return nil, fmt.Errorf("%w: what the job resumes: %w", errCorrupt, err)
	}
	return from, nil
}

func ofParent(f field[journal.Parent]) field[collation.Job] {
	return partOf(func(x *collation.Job) **journal.Parent { return &x.Parent }, f)
}

func ofFrom(f field[journal.From]) field[collation.Job] {
	return partOf(func(x *collation.Job) **journal.From { return &x.From }, f)
}

// readJob reads the columns of a job's header.
func (s *Store) readJob(v row) collation.Job {
	job := jobColumns.of(v) // these columns read any value
	job.Space = s.cfg.Space
	return *job
}

// instanceColumns are the columns of an instance without its keys.
var instanceColumns = listOf("instance",
	intOf("ledger", func(x *collation.Instance) *collation.ActivityLedger { return &x.Ledger }),
	intOf("result_seq", func(x *collation.Instance) *int64 { return &x.ResultSeq }),
	intOf("code", func(x *collation.Instance) *int { return &x.Code }),
	uuidOf("leg1", func(x *collation.Instance) *journal.GUID { return &x.Leg1 }).orNull(),
	intOf("open", func(x *collation.Instance) *int { return &x.Open }),
	intOf("count", func(x *collation.Instance) *int { return &x.Count }),
	intOf("size", func(x *collation.Instance) *int { return &x.Size }),
	intOf("turn", func(x *collation.Instance) *int { return &x.Turn }),
	intOf("attempt", func(x *collation.Instance) *int { return &x.Attempt }),
	uuidOf("child", func(x *collation.Instance) *journal.JobID { return &x.Child }).orNull(),
)

// waitColumns are the columns of a wait without its mailbox, which follows from topic and key.
var waitColumns = listOf("wait",
	uuidOf("job", func(x *collation.Wait) *journal.JobID { return &x.Job }).asKey(),
	uuidOf("guid", func(x *collation.Wait) *journal.GUID { return &x.GUID }).asKey(),
	textOf("activity", func(x *collation.Wait) *string { return &x.Activity }),
	textOf("dad", func(x *collation.Wait) *collation.DAD { return &x.DAD }),
	textOf("topic", func(x *collation.Wait) *string { return &x.Topic }),
	textOf("key", func(x *collation.Wait) *string { return &x.Key }),
	boolOf("repeat", func(x *collation.Wait) *bool { return &x.Repeat }),
	intOf("max_age", func(x *collation.Wait) *collation.Micros { return &x.MaxAge }),
	intOf("count", func(x *collation.Wait) *int { return &x.Count }),
	intOf("since", func(x *collation.Wait) *collation.Micros { return &x.Since }),
	intOf("origin", func(x *collation.Wait) *int64 { return &x.Origin }),
	uuidOf("request", func(x *collation.Wait) *journal.GUID { return &x.Request }).orNull(),
)

// liveEffect says whether the run that started the effect e still holds its request, the dispatch
// row d.
const liveEffect = "coalesce(e.state = 'started' AND d.fence = e.fence AND d.holder = e.holder, false)"

// effectColumns are the columns of an effect without its place.
var effectColumns = listOf("effect",
	digestOf("key", func(x *store.EffectRow) *journal.Digest { return &x.Key }).asKey(),
	textOf("name", func(x *store.EffectRow) *string { return &x.Name }),
	textOf("class", func(x *store.EffectRow) *string { return &x.Class }),
	intOf("not_done", func(x *store.EffectRow) *int { return &x.N }),
	textOf("state", func(x *store.EffectRow) *store.EffectState { return &x.State }),
	bytesOf("result", func(x *store.EffectRow) *[]byte { return &x.Result }).orNull(),
	errorColumn,
	intOf("fence", func(x *store.EffectRow) *int64 { return &x.Fence }),
	textOf("holder", func(x *store.EffectRow) *string { return &x.Holder }),
	boolOf("live", func(x *store.EffectRow) *bool { return &x.Live }).readAs(liveEffect),
	textOf("position", func(x *store.EffectRow) *string { return &x.Position }),
	boolOf("vouched", func(x *store.EffectRow) *bool { return &x.Vouched }),
)

// errorColumn holds an effect's error.
var errorColumn = field[store.EffectRow]{
	name: "error", make: byteas,
	put: func(c *column, x *store.EffectRow) { c.someBytes(encodeFailure(x.Error)) },
	get: func(v row, i int, x *store.EffectRow) error {
		if v.null(i) {
			return nil
		}
		f := &wire.Failure{}
		if err := json.Unmarshal(v[i], f); err != nil {
			return fmt.Errorf("%w: effect %s: %w", errCorrupt, x.Key, err)
		}
		x.Error = &journal.Failure{Class: f.Class, Message: f.Message, Data: f.Data, Stack: f.Stack}
		return nil
	},
}

// encodeFailure returns the column's value of an error; nil, which is NULL, for none.
func encodeFailure(f *journal.Failure) []byte {
	if f == nil {
		return nil
	}
	return wire.Encode(&wire.Failure{Class: f.Class, Message: f.Message, Data: f.Data, Stack: f.Stack})
}

// readEffect reads the columns of an effect. An error that cannot be read is errCorrupt.
func readEffect(v row) (x store.EffectRow, err error) {
	err = effectColumns.read(v, &x)
	return x, err
}
