package collation

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/quipu-journal/quipu/journal"
)

// Labels keep the kinds of identifiers apart: equal fields never give equal
// ids of two kinds.
const (
	labelStart    = "quipu-start-v1"
	labelLeg1     = "quipu-leg1-v1"
	labelRequest  = "quipu-request-v1"
	labelResponse = "quipu-response-v1"
	labelMessage  = "quipu-message-v1"
	labelMailbox  = "quipu-mailbox-v1"
	labelSignal   = "quipu-signal-v1"
	labelWakeUp   = "quipu-wakeup-v1"
	labelCycle    = "quipu-cycle-v1"
	labelJoin     = "quipu-join-v1"
	labelChild    = "quipu-child-v1"
	labelOutcome  = "quipu-outcome-v1"
	labelStop     = "quipu-interrupt-v1"
	labelUndo     = "quipu-undo-v1"
	labelAsk      = "quipu-ask-v1"
)

// NewJobID derives the id of one generation of a key (C8). No two generations share an id.
func NewJobID(space, key string, generation int64) journal.JobID {
	return journal.JobID(newGUID(labelStart, text(space), text(key), number(generation)))
}

// AskID derives the id under which a client asks for a start. nonce is fresh with each call.
func AskID(space, key, nonce string) journal.JobID {
	return journal.JobID(newGUID(labelAsk, text(space), text(key), text(nonce)))
}

// Leg1GUID derives the GUID of the Leg1 message that the message parent
// dispatches to child at dad (C8, 1.4).
func Leg1GUID(parent journal.GUID, child string, dad DAD) journal.GUID {
	return newGUID(labelLeg1, id(parent), text(child), text(string(dad)))
}

// RequestGUID derives the GUID of the request that a Leg1 writes for one
// element; an activity without `each` has element 0.
func RequestGUID(leg1 journal.GUID, element int) journal.GUID {
	return newGUID(labelRequest, id(leg1), number(int64(element)))
}

// ResponseGUID derives the GUID of the response, or of the answer, to one turn
// of a request. Turn 0 of a Leg1's GUID names the answer of an activity that
// wrote no request (1.4).
func ResponseGUID(request journal.GUID, turn int) journal.GUID {
	return newGUID(labelResponse, id(request), number(int64(turn)))
}

// OperatorGUID derives the GUID of an operator's action on a message: the
// action's name and how often the message's row was acted on before.
func OperatorGUID(message journal.GUID, action string, n int) journal.GUID {
	return newGUID(labelMessage, id(message), text(action), number(int64(n)))
}

// Mailbox is where the signals of one topic and key meet their waits. A signal is addressed to
// no job, so the mailbox stands in the place of one.
func Mailbox(space, topic, key string) journal.JobID {
	return journal.JobID(newGUID(labelMailbox, text(space), text(topic), text(key)))
}

// SignalGUID derives the GUID of a signal from outside: caller is the caller's
// idempotency key, or a fresh id (1.4).
func SignalGUID(space, topic, key, caller string) journal.GUID {
	return newGUID(labelSignal, text(space), text(topic), text(key), text(caller))
}

// SentGUID derives the GUID of the signal that a signal activity sends.
func SentGUID(leg1 journal.GUID) journal.GUID { return newGUID(labelSignal, id(leg1)) }

// WakeUpGUID derives the GUID of a wake-up (1.4). by is signal or timer; name is that of the
// wait, and empty for a hook. For a repeating hook it is the GUID of the wait, from which
// SignalledGUID derives the wake-ups.
func WakeUpGUID(leg1 journal.GUID, by journal.By, name string) journal.GUID {
	return newGUID(labelWakeUp, id(leg1), text(string(by)), text(name))
}

// SignalledGUID derives the GUID of one wake-up of a repeating hook.
func SignalledGUID(wait, signal journal.GUID) journal.GUID {
	return newGUID(labelWakeUp, id(wait), id(signal))
}

// CycleGUID derives the GUID of a cycle's message from its Leg1's.
func CycleGUID(leg1 journal.GUID) journal.GUID { return newGUID(labelCycle, id(leg1)) }

// JoinGUID derives the GUID of a join's Leg1 message. It is the same whichever arrival
// dispatches it (1.4).
func JoinGUID(job journal.JobID, join string, dad DAD) journal.GUID {
	return newGUID(labelJoin, id(journal.GUID(job)), text(join), text(string(dad)))
}

// ChildID derives the id of the child that an await starts in the given turn. The GUID of the
// child's start message follows from it (1.4).
func ChildID(leg1 journal.GUID, turn int) journal.JobID {
	return journal.JobID(newGUID(labelChild, id(leg1), number(int64(turn))))
}

// PauseGUID derives the GUID of a pause of a durable function: of the wake-up for a sleep, of
// the wait for a signal, of the start for a child (1.4). It includes the position, so that a
// name that a losing branch has used can be used again.
func PauseGUID(request journal.GUID, p journal.PauseRef) journal.GUID {
	switch p.Kind {
	case journal.PauseChild:
		return NamedChild(request, p).Start()
	case journal.PauseSignal:
		return WakeUpGUID(request, journal.BySignal, placed(p))
	}
	return WakeUpGUID(request, journal.ByTimer, placed(p))
}

// NamedChild derives the id of the child that a durable function starts.
func NamedChild(request journal.GUID, p journal.PauseRef) journal.JobID {
	return journal.JobID(newGUID(labelChild, id(request), text(placed(p))))
}

// placed tells equal names apart by position; a position contains no '@'.
func placed(p journal.PauseRef) string { return p.Name + "@" + p.Position }

// UndoID derives the id of the job that compensates a function that somebody else ended (3.5).
func UndoID(request journal.GUID) journal.JobID {
	return journal.JobID(newGUID(labelUndo, id(request)))
}

// TimeoutGUID derives the GUID of the wake-up that ends a function's wait for a signal when its
// bound has passed.
func TimeoutGUID(wait journal.GUID) journal.GUID { return newGUID(labelWakeUp, id(wait)) }

// OutcomeGUID derives the GUID of a child's outcome.
func OutcomeGUID(start journal.GUID, turn int) journal.GUID {
	return newGUID(labelOutcome, id(start), number(int64(turn)))
}

// InterruptGUID derives the GUID of an interrupt that the message sender sends to the target.
func InterruptGUID(sender journal.GUID, target journal.JobID) journal.GUID {
	return newGUID(labelStop, id(sender), id(journal.GUID(target)))
}

// AskedInterruptGUID derives the GUID of an interrupt from outside: caller is
// the caller's key, or a fresh id.
func AskedInterruptGUID(caller string, target journal.JobID) journal.GUID {
	return newGUID(labelStop, text(caller), id(journal.GUID(target)))
}

// field is one typed, length-prefixed field of the hash (C8).
type field struct {
	kind byte
	data []byte
}

func text(s string) field     { return field{'s', []byte(s)} }
func id(g journal.GUID) field { return field{'g', g[:]} }
func number(n int64) field    { return field{'i', binary.BigEndian.AppendUint64(nil, uint64(n))} }
func newGUID(label string, fields ...field) journal.GUID {
	b := make([]byte, 0, 160)
	b = binary.BigEndian.AppendUint32(b, uint32(len(label)))
	b = append(b, label...)
	for _, f := range fields {
		b = append(b, f.kind)
		b = binary.BigEndian.AppendUint32(b, uint32(len(f.data)))
		b = append(b, f.data...)
	}
	sum := sha256.Sum256(b)
	g := journal.GUID(sum[:16])
	g[6] = g[6]&0x0f | 0x80 // version 8
	g[8] = g[8]&0x3f | 0x80 // RFC 9562 variant
	return g
}
