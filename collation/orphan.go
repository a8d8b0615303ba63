package collation

// WriteDeadLetter decides on a message that nobody can handle and that has no row to hold:
// undecodable, foreign or refused (T3). It writes only the dead letter.
func WriteDeadLetter(d DeadLetter) *Plan {
	return &Plan{Job: d.Job, Outcome: NoRow, Done: true, LetterWrites: LetterWrites{Dead: []DeadLetter{d}}}
}

// Discard decides on the row of a message whose job cannot take it. It reads whether only the
// tombstone of the job is left (C5), the job, and its start row; nil: there is none. nil is
// returned if the job exists or may still begin: the row stays. Otherwise it writes the end of
// the row, if there is one. A signal is addressed to no job, so its row can always be ended
// when the signal is given up (C10).
func Discard(row RowKey, tombstone bool, job *State, start *Row) *Plan {
	if !tombstone && (job != nil || start != nil) {
		return nil
	}
	return &Plan{
		Job:       row.Job,
		Message:   row.GUID,
		Outcome:   NoRow,
		Done:      true,
		RowWrites: RowWrites{Discard: []RowKey{row}},
	}
}
