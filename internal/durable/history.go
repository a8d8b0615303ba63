package durable

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// history is what is recorded of a durable function, by the places of its calls
// (E15). A place is a number of its branch; that of branch b of the fork at
// position p is p.b.1, p.b.2 and so on. A function may have thousands of them and is
// run as often: what its own branch has recorded is found by number.
type history struct {
	order []*record
	first int                // none before it in order is missed
	main  []*record          // of the function's own branch, by number - 1; nil where nothing is recorded
	at    map[string]*record // at all other positions
	forks map[string]bool    // positions with branches that have records
	high  map[string]int     // number of the last record of a branch, or of one within it

	looked int                 // how often pauses were looked for by name
	named  map[pauseID]*record // pauses by name, the first of each; see pauses
}

type pauseID struct {
	kind journal.PauseKind
	name string
}

func (id pauseID) names(p *store.Pause) bool { return p.Name == id.name && p.Kind == id.kind }

// record is one recorded call.
type record struct {
	position string
	effects  []store.EffectRow // the last outcome, after those "not done"
	pause    *store.Pause
	next     *record // of the pause's name, in history.named
	seen     bool    // by this run
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
	h := &history{}
	n := len(rows) + len(pauses)
	h.order, h.main = make([]*record, 0, n), make([]*record, 0, n)
	slab := make([]record, n) // at once: there are many
	put := func(position string) *record {
		if position == "" || position == journal.UndoPosition {
			return nil
		}
		r := h.record(position)
		if r == nil {
			r, slab = &slab[0], slab[1:]
			h.place(r, position)
		}
		return r
	}
	for _, row := range rows {
		if r := put(row.Position); r != nil {
			r.effects = append(r.effects, row)
		}
	}
	for i := range pauses {
		if r := put(pauses[i].Position); r != nil {
			r.pause = &pauses[i]
		}
	}
	return h
}

// pass is the pause at the place of that number of the function's own branch, which the
// run comes by; nil where anything else is recorded there.
func (h *history) pass(n int, id pauseID) *store.Pause {
	r := h.nth(n)
	if r == nil || r.pause == nil || r.pause.Response == nil || !id.names(r.pause) {
		return nil
	}
	r.seen = true
	return r.pause
}

// ownNumber is that of a position of the function's own branch, 0 for another one.
func ownNumber(position string) (n int) {
	for i := range len(position) {
		c := position[i]
		if c < '0' || c > '9' || c == '0' && n == 0 || n > maxNumber {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	if n > maxNumber {
		return 0
	}
	return n
}

// maxNumber bounds the numbers of calls, refused ones too.
const maxNumber = 2 * effect.MaxCalls

// record is what is recorded at a position, nil for nothing.
func (h *history) record(position string) *record {
	if n := ownNumber(position); n > 0 {
		return h.nth(n)
	}
	return h.at[position]
}

// nth is what is recorded of the call of that number of the function's own branch,
// nil for nothing.
func (h *history) nth(n int) *record {
	if n < 1 || n > len(h.main) {
		return nil
	}
	return h.main[n-1]
}

// place puts a record at its position.
func (h *history) place(r *record, position string) {
	r.position = position
	h.order = append(h.order, r)
	if n := ownNumber(position); n > 0 {
		for len(h.main) < n {
			h.main = append(h.main, nil)
		}
		h.main[n-1] = r
		return
	}
	if h.at == nil {
		h.at, h.forks, h.high = map[string]*record{}, map[string]bool{}, map[string]int{}
	}
	h.at[position] = r
	for at := position; ; {
		branch, number := "", at
		if i := strings.LastIndexByte(at, '.'); i >= 0 {
			branch, number = at[:i], at[i+1:]
		}
		n, _ := strconv.Atoi(number) // 0 if it is no number, which no call has
		h.high[branch] = max(h.high[branch], n)
		i := strings.LastIndexByte(branch, '.')
		if i < 0 {
			return
		}
		at = branch[:i]
		h.forks[at] = true
	}
}

// highest is the number of the last record of a branch, or of one within it.
func (h *history) highest(path string) int {
	if path == "" {
		return max(len(h.main), h.high[path])
	}
	return h.high[path]
}

// manyLooks is from how many looks on a map of all pauses is worth its making. A run
// that has nothing new but its next wait looks once; one with branches, or one that stands
// there and goes on, many times.
const manyLooks = 4

// pauses are the records of pauses of that name: one that a branch has used which lost
// can be used again.
func (h *history) pauses(id pauseID) (all []*record) {
	if h.looked++; h.looked < manyLooks {
		for _, r := range h.order {
			if r.pause != nil && id.names(r.pause) {
				all = append(all, r)
			}
		}
		return all
	}
	if h.named == nil {
		h.named = make(map[pauseID]*record, len(h.order))
		for _, r := range slices.Backward(h.order) {
			if r.pause != nil {
				id := pauseID{r.pause.Kind, r.pause.Name}
				h.named[id], r.next = r, h.named[id]
			}
		}
	}
	for r := h.named[id]; r != nil; r = r.next {
		all = append(all, r)
	}
	return all
}

// beyond reports that the record goes on after the calls that the branch has
// made: with calls of its own, or of those that waited for its end.
func (h *history) beyond(b *branch) bool {
	for ; ; b = b.parent() {
		if h.highest(b.path) > b.calls {
			return true
		}
		if b.fork == nil || b.slower {
			return false
		}
		if b.fork.decided {
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
