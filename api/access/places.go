package access

import (
	"net/http"
	"sync"
)

// Places bounds how much of one kind is under way at a time, of one caller and of all, so that one
// caller cannot take every place. Its methods are safe for concurrent use.
type Places struct {
	what            string
	most, mostOfOne int

	mu  sync.Mutex
	all int
	of  map[string]int // by caller
}

// NewPlaces makes places for most of all, of which one caller has ofOne. what names them in the
// problems of callers: "requests".
func NewPlaces(what string, most, ofOne int) *Places {
	return &Places{what: what, most: most, mostOfOne: ofOne, of: map[string]int{}}
}

// Take takes a place for a caller. Without one left it returns what to answer: 429 if the caller
// has too many, 503 if all together have.
func (p *Places) Take(caller string) (giveBack func(), refused *Problem) {
	if !p.enter(caller) {
		return nil, NewProblem(http.StatusTooManyRequests, CodeTooMany, "this caller has too many "+p.what+" under way: let some of them end")
	}
	if !p.enter("") {
		p.leave(caller)
		return nil, NewProblem(http.StatusServiceUnavailable, CodeBusy, "the server has too many "+p.what+" under way: try again in a moment")
	}
	return func() { p.leave(""); p.leave(caller) }, nil
}

// enter takes a place for a caller, "" for one of all; false: there is none left.
func (p *Places) enter(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case name == "" && p.all >= p.most, name != "" && p.of[name] >= p.mostOfOne:
		return false
	case name == "":
		p.all++
	default:
		p.of[name]++
	}
	return true
}

func (p *Places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "" {
		p.all--
		return
	}
	if p.of[name]--; p.of[name] == 0 {
		delete(p.of, name)
	}
}
