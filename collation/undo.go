package collation

import (
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// UndoOrder is the input of a job that runs the compensations of a function which somebody else
// ended: an operator, its bound, the close of its job (3.5).
type UndoOrder struct {
	Job        string `json:"job"`
	Key        string `json:"key"` // of the job
	Generation int64  `json:"generation"`
	// Root and RootGeneration are set if the job resumes another: effect keys contain them (E1).
	Root           string          `json:"root,omitempty"`
	RootGeneration int64           `json:"root_generation,omitempty"`
	Flow           string          `json:"flow"`
	Version        string          `json:"version"`
	Activity       string          `json:"activity"`
	DAD            string          `json:"dad"`
	Element        int             `json:"element"`
	Request        string          `json:"request"`
	Code           int             `json:"code"` // why the function was ended
	Message        string          `json:"message"`
	Input          json.RawMessage `json:"input"` // of the function
}

// orderUndo orders that job. Nobody waits for it, and it is no obligation. A run of the
// function may still be busy outside, and its work can be undone only afterwards. So the job
// begins when that run has had time to notice and to end (Mode.Outside). It reads the record of
// this job, which does not expire before.
func (b *builder) orderUndo(row *Row, code int, message string) {
	input := row.Body
	if row.Kind == journal.MessageAnswer && row.Input != nil {
		input = row.Input
	}
	job := &b.s.Job
	undo := UndoOrder{
		Job: job.ID.String(), Key: job.Key, Generation: job.Generation, Flow: job.Flow.Name, Version: job.Flow.Version,
		Activity: row.Activity, DAD: string(row.DAD), Element: row.Element, Request: row.GUID.String(),
		Code: code, Message: message, Input: input,
	}
	if job.From != nil && !job.From.Forks() {
		undo.Root, undo.RootGeneration = job.From.Root.String(), job.From.RootGeneration
	}
	raw, err := canonical.Marshal(&undo)
	if err != nil {
		// The compensations cannot run without this order, and the entry says so.
		b.p.Entry.Trouble = &journal.Trouble{Reason: reasonUndo, Message: short(fmt.Errorf("the compensations of %s are not run: %w", row.Activity, err))}
		return
	}
	o := &StartOrder{
		Flow: flow.UndoName, Version: row.Topic, Input: raw,
		Parent: journal.Parent{
			Space: job.Space, Job: job.ID, Activity: row.Activity, DAD: string(row.DAD), Leg1: row.GUID,
		},
	}
	at := Micros(0) // at once
	if row.Holder != "" {
		at = b.s.Now + b.mode.Outside
	}
	start, err := b.startRow(o, UndoID(row.GUID), row.Activity+".undo", max(at, b.s.Now))
	if err == nil {
		start.Sender, start.Undo = job.ID, true
		b.insertRowAt(start, at)
	}
}

// reasonUndo marks an entry whose compensations could not be ordered.
const reasonUndo = "undo"
