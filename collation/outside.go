package collation

// Interrupt decides on an interrupt from outside (1.11). It reads: the job, the row
// of the interrupt and its receipt. It decides: nil where one of those is known, so
// that a job is interrupted once, otherwise the insertion of the row, due now. It
// writes the row alone. The error is what CheckInterrupt says.
func Interrupt(s *State, row Row, mode Mode) (*Plan, error) {
	if err := CheckInterrupt(&row); err != nil {
		return nil, err
	}
	if s.Rows[row.GUID] != nil || s.Receipts[row.GUID] != nil {
		return nil, nil
	}
	row.NextAt = s.Now
	if mode.Resend > 0 {
		row.published(s.Now, &mode)
	}
	return &Plan{Job: row.Job, Message: row.GUID, Outcome: Handled, Done: true, Insert: []Row{row}}, nil
}
