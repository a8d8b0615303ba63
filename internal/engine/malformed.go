package engine

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
)

// failedAttempt is the hint that stands for a worker's message which cannot be read; nil if the message
// does not say what it answers. Its header, which its MAC covers (S2), has the GUID of the response,
// which follows from request and turn: so the body that names both says what it answers. Then the
// attempt has failed, and that is recorded (E8, E10): to end the message alone would have the
// request sent, and the handler run, again and again.
func failedAttempt(m *transport.Message, why error) (*wire.Hint, *journal.Response) {
	h := wire.DecodeAddress(m.Body)
	request, err := journal.ParseGUID(h.Row)
	if err != nil || h.Kind != journal.MessageResponse || h.Turn < 1 || h.Turn != m.Header.Turn ||
		collation.ResponseGUID(request, h.Turn) != m.Header.GUID {
		return nil, nil
	}
	response, err := wire.Refused(m.Header.Topic, why).Journal()
	if err != nil {
		return nil, nil
	}
	return h, response
}

// warnRefused says what became of a response that was refused.
func (l *loop) warnRefused(m *message) {
	if r := m.msg.Response; m.refused {
		l.log.Warn("a worker's response cannot be read: its attempt has failed", "job", m.msg.Job.String(),
			"activity", m.msg.Activity, "topic", m.topic, "turn", m.msg.Turn, "error", r.Error.Message)
	}
}
