package journal

// Attachment is stored bytes that the entries of a job name by their digest and do not hold: the
// definition of the job's flow version, or an output that is stored beside its entry (E6).
type Attachment struct {
	Definition bool   // of the flow; otherwise an output
	Digest     Digest // under which it is stored
	Body       []byte
}
