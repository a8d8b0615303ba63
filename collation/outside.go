package collation

import "github.com/quipu-journal/quipu/journal"

// Interrupt decides on an interrupt from outside (1.11). It reads the job, the row of the
// interrupt and its receipt. known says that the interrupt has a record beside those of the
// signals. nil: one of the three exists, so that no job is interrupted twice by one key.
// Otherwise it inserts the row, due now; for a closed job it writes only the record (W12), which
// an engine does for a login that asks for what it wants by rows alone (S8). Errors are those of
// CheckInterrupt.
func Interrupt(s *State, row Row, known, asks bool, mode Mode) (*Plan, error) {
	if err := CheckInterrupt(&row); err != nil {
		return nil, err
	}
	if known || s.Rows[row.GUID] != nil || s.Receipts[row.GUID] != nil {
		return nil, nil
	}
	if s.Job.State.Closed() && !asks {
		return &Plan{
			Job:           row.Job,
			Message:       row.GUID,
			Outcome:       Stale,
			Done:          true,
			MailboxWrites: MailboxWrites{Signals: tooLate(row.GUID)},
		}, nil
	}
	row.NextAt = s.Now
	if mode.Resend > 0 {
		row.published(s.Now, &mode)
	}
	return &Plan{
		Job:       row.Job,
		Message:   row.GUID,
		Outcome:   Handled,
		Done:      true,
		RowWrites: RowWrites{Insert: []Row{row}},
	}, nil
}

// tooLate is the record of an interrupt that met a closed job. It keeps the interrupt's key,
// since nothing is written to the job and there is no receipt (W12).
func tooLate(interrupt journal.GUID) []SignalWrite {
	return []SignalWrite{{GUID: interrupt, State: SignalMissed, New: true}}
}
