package journal

// These values follow from the rest of an entry: a body contains them only if they differ. The
// code judges nothing; the laws do.

// Digits of ledgers (1.2, 1.3): most ledgers follow from the marks of their entry.
const (
	ledgerEntered   Ledger = 1_000_000_000_000
	ledgerComplete  Ledger = 100_000_000_000
	ledgerTrigger   Ledger = 100_000_000_000_000
	ledgerFinalized Ledger = 200_000_000_000_000
	ledgerCounter   Ledger = 100_000_000 // the counter is the remainder

	stepClosed   Ledger = 100_000_000_000
	stepWork     Ledger = 10_000_000_000
	stepChildren Ledger = 1_000_000_000
	stepTasks    Ledger = 100_000_000

	// ledgerSent is the ledger of an activity after its Leg1, before any response.
	ledgerSent = ledgerEntered + ledgerComplete
)

func (e *Entry) has(m Mark) bool {
	for _, x := range e.Marks {
		if x == m {
			return true
		}
	}
	return false
}

// answers reports whether the entry's message is the response to a request.
func (e *Entry) answers() bool {
	return e.Response != nil && !e.Response.Request.IsZero() && e.Response.Kind != ResponseWake
}

// impliedGUID is the request of an effect's chain, the response to a request, or the job's
// start.
func (e *Entry) impliedGUID() GUID {
	switch {
	case !e.Chain.IsZero():
		return e.Chain
	case e.answers():
		return DeriveResponse(e.Response.Request, e.Response.Turn)
	case e.Kind == KindCreated, e.Kind == KindLeg2 && e.Response == nil:
		return e.Job.Start()
	}
	return GUID{}
}

// impliedLedger is the ledger of an activity that is new or, with a response, has had only its
// Leg1.
func (e *Entry) impliedLedger() Ledger {
	entered := e.has(MarkEntered)
	switch {
	case e.Kind == KindCreated:
		return ledgerTrigger + ledgerSent + 1
	case e.Kind == KindLeg1 && entered && e.has(MarkWork):
		return ledgerSent
	case e.Kind == KindLeg1 && entered:
		return ledgerEntered
	case e.Kind == KindLeg2 && entered && e.has(MarkChildren) && e.Response != nil &&
		e.Response.Kind == ResponseTerminal:
		return ledgerFinalized + ledgerSent + 1
	case e.Kind == KindLeg2 && entered:
		return ledgerSent + 1
	}
	return 0
}

// impliedReceipt is the receipt of a message that this entry accepts, with the steps that it
// takes. The job's first entry has accepted its start.
func (e *Entry) impliedReceipt() Ledger {
	steps := Ledger(0)
	for _, m := range e.Marks {
		switch m {
		case MarkWork:
			steps += stepWork
		case MarkChildren:
			steps += stepChildren
		case MarkClosed:
			steps += stepClosed
		case MarkTasks:
			steps += stepTasks
		}
	}
	switch e.Kind {
	case KindCreated, KindInterrupt:
		return steps
	case KindLeg1:
		if e.Result == nil && !e.has(MarkChildren) {
			return 0
		}
		return steps
	case KindLeg2:
		if e.has(MarkEntered) {
			return steps + e.Ledger%ledgerCounter
		}
		if e.GUID == e.Job.Start() {
			return steps + stepWork
		}
	}
	return 0
}

// impliedEnd is the row of the message, if the message is done.
func (e *Entry) impliedEnd() GUID {
	done := e.Receipt/stepChildren%10 == 1 && (e.Receipt/stepClosed%10 == 0 || e.Receipt/stepTasks%10 == 1)
	switch e.Kind {
	case KindLeg1:
		done = done || e.Receipt == 0 && e.has(MarkWork)
	case KindStale:
		done = true
	case KindLeg2:
		if e.answers() {
			done = done && (e.Response.Kind == ResponseTerminal || e.Response.Kind == ResponsePass)
		} else {
			done = done && (e.Response != nil || e.GUID == e.Job.Start())
		}
	}
	switch {
	case !done:
		return GUID{}
	case e.answers():
		return e.Response.Request
	}
	return e.GUID
}

// sender is the Leg1 whose work the fields describe: the entry's own message, or the last
// folded one.
type sender struct {
	guid          GUID
	activity, dad string
}

// impliedDAD is the address of a dispatched message: one segment deeper for a Leg1, the root
// for a message to another job, otherwise the address of the activity at work.
func (c *codec) impliedDAD(e *Entry, k MessageKind) string {
	switch k {
	case MessageLeg1:
		return below(e.DAD)
	case MessageStart, MessageSignal, MessageInterrupt:
		return ",0"
	}
	return c.sender.dad
}

// impliedID is the id of a dispatched message (1.4).
func (c *codec) impliedID(e *Entry, d *Dispatched) GUID {
	switch d.Kind {
	case MessageLeg1:
		return DeriveLeg1(e.GUID, d.Activity, d.DAD)
	case MessageRequest:
		return DeriveRequest(c.sender.guid, 0)
	case MessageAnswer:
		return DeriveResponse(c.sender.guid, 0)
	case MessageWakeUp:
		return DeriveWakeUp(c.sender.guid, ByTimer, "")
	case MessageCycle:
		return DeriveCycle(e.GUID)
	case MessageSignal:
		return DeriveSent(e.GUID)
	case MessageStart:
		if e.Kind == KindCreated {
			return e.Job.Start()
		}
		return DeriveChild(c.sender.guid, 1).Start()
	}
	return GUID{}
}

// impliedRow is a request's row after its pending response: in its next turn and, after a
// failed attempt, its next attempt.
func (e *Entry) impliedRow() Updated {
	u := Updated{Kind: MessageRequest, Turn: 1, Attempt: 1}
	r := e.Response
	if r == nil {
		return u
	}
	u.GUID, u.Turn, u.Attempt = r.Request, r.Turn, r.Attempt
	if r.Kind != ResponseTerminal {
		u.Turn++
	}
	if r.Kind == ResponseFailedAttempt {
		u.Attempt++
	}
	return u
}
