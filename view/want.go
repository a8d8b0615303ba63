package view

// Want is what is wanted of a job beside its state, its activities, and what is open of it.
type Want struct {
	// At is the entry of its main chain that the job is shown at; 0: it is shown as it stands. Of the past
	// there are no publications, leases and Reasons.
	At int64
	// Graph and Effects ask for these.
	Graph, Effects bool
	// Journal asks for these, and for what the journal tells: the input, inputs, outputs, attempts and
	// times of activities, the entries of effects, obligations and pauses. If the journal cannot be read,
	// HistoryError says why.
	Journal bool
	// Events, Messages (all that the journal names) and Tree ask for these. They fail where the journal
	// cannot be read.
	Events, Messages, Tree bool
	// Reasons asks for what the job waits for, or how it ended.
	Reasons bool
	// Addresses puts the address of each instance into the sentences of Reasons.
	Addresses bool
}
