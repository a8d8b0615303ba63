package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// This is the derivation of ids (C8) for readers: SHA-256 over a label and typed,
// length-prefixed fields. The runtime makes its ids by separate code in package collation, and
// both are held to the same golden vectors. If the runtime derives an id differently, the entry
// contains the id, and a verifier sees it.

// preimage is the text whose hash is an id.
type preimage []byte

func labelled(label string) preimage {
	p := make(preimage, 0, 192)
	return append(binary.BigEndian.AppendUint32(p, uint32(len(label))), label...)
}

func (p preimage) text(s string) preimage {
	return append(binary.BigEndian.AppendUint32(append(p, 's'), uint32(len(s))), s...)
}

func (p preimage) id(id [16]byte) preimage {
	return append(binary.BigEndian.AppendUint32(append(p, 'g'), uint32(len(id))), id[:]...)
}

func (p preimage) number(n int64) preimage {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(append(p, 'i'), 8), uint64(n))
}

// guid has the layout of a UUIDv8.
func (p preimage) guid() GUID {
	sum := sha256.Sum256(p)
	g := GUID(sum[:16])
	g[6] = g[6]&0x0f | 0x80
	g[8] = g[8]&0x3f | 0x80
	return g
}

// DeriveJob derives the id of one generation of a key.
func DeriveJob(space, key string, generation int64) JobID {
	return JobID(labelled("quipu-start-v1").text(space).text(key).number(generation).guid())
}

// DeriveLeg1 derives the Leg1 message that a message dispatches.
func DeriveLeg1(parent GUID, activity, dad string) GUID {
	return labelled("quipu-leg1-v1").id(parent).text(activity).text(dad).guid()
}

// DeriveJoin derives the Leg1 message of a join.
func DeriveJoin(job JobID, activity, dad string) GUID {
	return labelled("quipu-join-v1").id(job).text(activity).text(dad).guid()
}

// DeriveRequest derives the request of a Leg1 for one element.
func DeriveRequest(leg1 GUID, element int) GUID {
	return labelled("quipu-request-v1").id(leg1).number(int64(element)).guid()
}

// DeriveResponse derives the response to one turn of a request. For a Leg1, turn 0 is the
// answer of an activity that wrote no request.
func DeriveResponse(request GUID, turn int) GUID {
	return labelled("quipu-response-v1").id(request).number(int64(turn)).guid()
}

// DeriveOperator derives an operator's n-th action on a message, from 0.
func DeriveOperator(message GUID, action string, n int) GUID {
	return labelled("quipu-message-v1").id(message).text(action).number(int64(n)).guid()
}

// DeriveSent derives the signal that a signal activity sends.
func DeriveSent(leg1 GUID) GUID { return labelled("quipu-signal-v1").id(leg1).guid() }

// DeriveWakeUp derives a wake-up by a signal or a timer; a hook's has no name.
func DeriveWakeUp(leg1 GUID, by By, name string) GUID {
	return labelled("quipu-wakeup-v1").id(leg1).text(string(by)).text(name).guid()
}

// DeriveSignalled derives one wake-up of a repeating hook.
func DeriveSignalled(wait, signal GUID) GUID {
	return labelled("quipu-wakeup-v1").id(wait).id(signal).guid()
}

// DeriveTimeout derives the wake-up that ends a function's wait at its bound.
func DeriveTimeout(wait GUID) GUID { return labelled("quipu-wakeup-v1").id(wait).guid() }

// DeriveCycle derives the message of a cycle.
func DeriveCycle(leg1 GUID) GUID { return labelled("quipu-cycle-v1").id(leg1).guid() }

// DeriveChild derives the child that an await starts in a turn.
func DeriveChild(leg1 GUID, turn int) JobID {
	return JobID(labelled("quipu-child-v1").id(leg1).number(int64(turn)).guid())
}

// DerivePause derives the id of a pause of a durable function: a sleep's wake-up, a signal's
// wait, a child's start.
func DerivePause(request GUID, p PauseRef) GUID {
	placed := p.Name + "@" + p.Position
	switch p.Kind {
	case PauseChild:
		return labelled("quipu-child-v1").id(request).text(placed).guid()
	case PauseSignal:
		return DeriveWakeUp(request, BySignal, placed)
	}
	return DeriveWakeUp(request, ByTimer, placed)
}

// DeriveUndo derives the job that runs the compensations of a request.
func DeriveUndo(request GUID) JobID {
	return JobID(labelled("quipu-undo-v1").id(request).guid())
}

// DeriveOutcome derives a child's outcome.
func DeriveOutcome(start GUID, turn int) GUID {
	return labelled("quipu-outcome-v1").id(start).number(int64(turn)).guid()
}

// DeriveInterrupt derives the interrupt that a message sends to a job.
func DeriveInterrupt(sender GUID, target JobID) GUID {
	return labelled("quipu-interrupt-v1").id(sender).id(target).guid()
}

// below is the address of a child at index 0 (1.9): one segment deeper, with four or more equal
// segments written once.
func below(dad string) string {
	at := strings.LastIndexByte(dad, ',') + 1
	if run, ok := strings.CutPrefix(dad[at:], "0^"); ok {
		if n, err := strconv.Atoi(run); err == nil {
			return dad[:at] + "0^" + strconv.Itoa(n+1)
		}
	}
	switch {
	case dad == ",0":
		return ",0,0"
	case dad == ",0,0":
		return ",0,0,0"
	case strings.HasSuffix(dad, ",0,0,0"):
		return strings.TrimSuffix(dad, ",0,0,0") + ",0^4"
	}
	return dad + ",0"
}
