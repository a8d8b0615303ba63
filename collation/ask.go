package collation

// A client whose login may not begin jobs asks the engines to (S8). It writes a start row, under
// an id of its own and with a record beside those of the signals. An engine begins the job and
// ends the row, and the record says what became of it.

import (
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/journal"
)

// TopicAsk marks the start row that a client wrote. Whoever may write only such rows can order
// no child of another job: the engine reads no parent from them.
const TopicAsk = "ask"

// Ask is the body of such a row: what a client wants begun.
type Ask struct {
	Flow    string          `json:"flow"`
	Version string          `json:"version,omitempty"` // "" the active one
	Key     string          `json:"key"`
	Input   json.RawMessage `json:"input"`
	Tags    []string        `json:"tags,omitempty"`
	At      Micros          `json:"at,omitempty"`    // as in Inception
	Delay   Micros          `json:"delay,omitempty"` // from the inception; the later one counts
	Trace   string          `json:"trace,omitempty"`
	Who     string          `json:"who,omitempty"` // who asked, for the journal (O11)
}

// Asked decides on a start that a client asks for: it inserts the row, due now, and its record.
// nonce is fresh with each call.
func (a *Ask) Asked(space, nonce string, now Micros) (*Plan, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("start of %.80q: %w", a.Key, err)
	}
	id := AskID(space, a.Key, nonce)
	row := Row{
		GUID: id.Start(), Job: id, Kind: journal.MessageStart, DAD: RootDAD, Topic: TopicAsk, Body: body, NextAt: now,
	}
	return &Plan{
		Job: id, Message: row.GUID, Outcome: Handled, Done: true, RowWrites: RowWrites{Insert: []Row{row}},
		MailboxWrites: MailboxWrites{Signals: []SignalWrite{{GUID: row.GUID, State: SignalKept, New: true}}},
	}, nil
}

// Ask reads what a client wants begun from its row.
func (r *Row) Ask() (*Ask, error) {
	a := &Ask{}
	if err := json.Unmarshal(r.Body, a); err != nil {
		return nil, fmt.Errorf("unreadable start %s: %w", r.GUID, err)
	}
	return a, nil
}

// Answered ends the row of a client's start. Its record says whether the job has begun, or why the
// start was refused; without a reason the key had that very job already.
func Answered(row *Row, begun bool, refused string) *Plan {
	state := SignalMissed
	if begun {
		state = SignalConsumed
	}
	return &Plan{
		Job:           row.Job,
		Message:       row.GUID,
		Outcome:       Handled,
		Done:          true,
		RowWrites:     RowWrites{Delete: []journal.GUID{row.GUID}},
		MailboxWrites: MailboxWrites{Signals: []SignalWrite{{GUID: row.GUID, State: state, Reason: refused}}},
	}
}
