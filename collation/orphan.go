package collation

// WriteDeadLetter decides on a message that nobody can handle, and that has no row that could be
// held: undecodable, foreign, refused (T3). It writes a dead letter, and nothing else.
func WriteDeadLetter(d DeadLetter) *Plan {
	return &Plan{Job: d.Job, Outcome: Unlicensed, Done: true, Dead: []DeadLetter{d}}
}

// Discard decides on the row of a message whose job cannot take it. It reads whether
// of the job only the tombstone is left (C5), the job, and the start of one that may
// begin yet, each nil where it is not there. It writes the end of the row, if there is
// one; nil where the job is there, or may begin: the row stays. A signal is addressed
// to no job, so that who gives it up can end it (C10).
func Discard(row RowKey, tombstone bool, job *State, start *Row) *Plan {
	if !tombstone && (job != nil || start != nil) {
		return nil
	}
	return &Plan{Job: row.Job, Message: row.GUID, Outcome: Unlicensed, Done: true, Discard: []RowKey{row}}
}
