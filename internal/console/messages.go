package console

import (
	"fmt"

	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// maxCaused bounds the messages that one is said to have caused: the start of a list causes all its requests.
const maxCaused = 8

// messages chooses what is shown of the messages (1.3), from one of them on.
func (p *jobPage) messages(from int) {
	if p.Job.HistoryLeft || p.Job.HistoryError != "" {
		return
	}
	if p.Tab != tabMessages {
		return
	}
	all := which(p.Job.Messages, func(m *view.Message) bool { return p.chosen(m.Activity) })
	p.Messages = some(all, from, maxMessages)
	p.places = make(map[journal.GUID]int, len(all))
	for n, m := range all {
		p.places[m.GUID] = n
	}
}

// digitsOf are the groups of digits of a message's ledger; nil: it has none.
func digitsOf(m *view.Message) []view.Digits {
	if m.Ledger == nil {
		return nil
	}
	return inspect.MessageDigits(*m.Ledger)
}

// named is a message that another names.
type named struct {
	Text string
	At   string // its address; "": it is not in the list
}

// Message names a message on the page of this address.
func (p *jobPage) Message(address string, g journal.GUID) named {
	x := named{Text: g.String()[:8]}
	n, known := p.places[g]
	if !known {
		return x
	}
	x.At = "#m-" + g.String()
	if n < p.Messages.From || n >= p.Messages.From+len(p.Messages.Shown) {
		x.At = with(address, "from", fmt.Sprint(n-n%maxMessages)) + x.At
	}
	return x
}

// Caused names the messages that one caused, the first of them.
func (p *jobPage) Caused(address string, all []journal.GUID) []named {
	var out []named
	for _, g := range all[:min(len(all), maxCaused)] {
		out = append(out, p.Message(address, g))
	}
	if more := len(all) - len(out); more > 0 {
		out = append(out, named{Text: fmt.Sprintf("and %d more", more)})
	}
	return out
}
