package durable

import (
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// undoPosition replaces the position in a pause between compensations, which is no call
// of the function.
const undoPosition = "undo"

// history is the record of a durable function, by the positions of its calls (E15). A
// position is the number of the call in its branch; in branch b of the fork at position p
// it is p.b.1, p.b.2 and so on.
type history struct {
	order  []*record
	first  int // in order; every record before it was seen or has lost
	at     map[string]*record
	pauses map[pauseID][]*record // several where a lost branch has used the name too
	forks  map[string]bool       // positions of forks whose branches have records
	high   map[string]int        // per branch, the highest number with a record at it or within it
}

type pauseID struct {
	kind journal.PauseKind
	name string
}

// record is one recorded call.
type record struct {
	position string
	effects  []store.EffectRow // the last outcome, after those "not done"
	pause    *store.Pause
	seen     bool // by this run
}

// String names the call for errors.
func (r *record) String() string {
	if r.pause != nil {
		return pauseLabel(r.pause.Kind, r.pause.Name)
	}
	return effectLabel(r.effects[0].Name)
}

func effectLabel(label string) string { return "effect " + strconv.Quote(label) }

func pauseLabel(kind journal.PauseKind, name string) string {
	return string(kind) + " " + strconv.Quote(name)
}

func newHistory(rows []store.EffectRow, pauses []store.Pause) *history {
	h := &history{
		at: make(map[string]*record), pauses: make(map[pauseID][]*record), forks: make(map[string]bool), high: make(map[string]int),
	}
	for _, row := range rows {
		if r := h.place(row.Position); r != nil {
			r.effects = append(r.effects, row)
		}
	}
	for i := range pauses {
		p := &pauses[i]
		if r := h.place(p.Position); r != nil {
			r.pause = p
			id := pauseID{p.Kind, p.Name}
			h.pauses[id] = append(h.pauses[id], r)
		}
	}
	return h
}

// place is the record at a position, which it makes if needed; nil if there is no
// position.
func (h *history) place(position string) *record {
	if position == "" || position == undoPosition {
		return nil
	}
	if r := h.at[position]; r != nil {
		return r
	}
	r := &record{position: position}
	h.at[position] = r
	h.order = append(h.order, r)
	for at := position; ; {
		branch, number := "", at
		if i := strings.LastIndexByte(at, '.'); i >= 0 {
			branch, number = at[:i], at[i+1:]
		}
		n, _ := strconv.Atoi(number) // 0 if it is no number, which no call has
		h.high[branch] = max(h.high[branch], n)
		i := strings.LastIndexByte(branch, '.')
		if i < 0 {
			return r
		}
		at = branch[:i]
		h.forks[at] = true
	}
}

// beyond reports that the record goes on after the calls that the branch has made, in the
// branch itself or in one that waited for its end.
func (h *history) beyond(b *branch) bool {
	for ; ; b = b.parent() {
		if h.high[b.path] > b.calls {
			return true
		}
		if b.of == nil || b.slower {
			return false
		}
		if b.of.decided {
			return true
		}
	}
}

// unseen is the first recorded call that the run has not made, nil for none. It skips
// branches that lost, which need not repeat their calls.
func (h *history) unseen(lost []string) *record {
	for ; h.first < len(h.order); h.first++ {
		r := h.order[h.first]
		if !r.seen && !under(r.position, lost) {
			return r
		}
	}
	return nil
}

// under reports whether the position lies in one of the branches at paths, or within it.
func under(position string, paths []string) bool {
	for _, path := range paths {
		if strings.HasPrefix(position, path+".") {
			return true
		}
	}
	return false
}
