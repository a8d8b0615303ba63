package quiputest

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
)

// numbers are what boundaries differ in that are alike: the numbers in names, and the
// explicit keys of effects.
var numbers = regexp.MustCompile(`\[[^"]*\]|[0-9]+`)

// kind is the same for boundaries that are alike: handlers of the same place are under
// way, at the same point of their code as far as names tell.
func (b *boundary) kind() string {
	text := b.request + "\x00" + strconv.FormatBool(b.turn > 1) + "\x00" + string(b.point) + "\x00" + b.what + "\x00" + b.stands
	return numbers.ReplaceAllString(text, "#")
}

// choose draws the boundaries to be tried, in their order.
func (c *crashConfig) choose(h host, seen []boundary) []int {
	h.Helper()
	n := len(seen)
	ends := endsOf(seen)
	limit, quota := c.limit, (c.limit+1)/2
	if !c.limited {
		limit = min(limit, max(maxSteps/n, len(ends)))
		quota = limit
	}
	if n <= limit {
		h.Logf("%d boundaries", n)
		return drawBelow(n)
	}
	seed := c.seed
	if !c.seeded {
		seed = rand.Uint64()
	}
	h.Logf("%d of %d boundaries, drawn by quiputest.Seed(%d); quiputest.Boundaries(%d) tries all", limit, n, seed, n)
	return draw(rand.New(rand.NewPCG(seed, 0)), ends, quota, n, limit)
}

// endsOf are the first and the last boundary of each kind.
func endsOf(seen []boundary) (ends []int) {
	first, last := map[string]int{}, map[string]int{}
	for i := range seen {
		k := seen[i].kind()
		if _, known := first[k]; !known {
			first[k] = i
		}
		last[k] = i
	}
	for k, i := range first {
		if ends = append(ends, i); last[k] != i {
			ends = append(ends, last[k])
		}
	}
	slices.Sort(ends)
	return ends
}

// draw takes limit numbers below n, in their order: some of the ends, quota at most,
// and for the rest any.
func draw(dice *rand.Rand, ends []int, quota, n, limit int) []int {
	var chosen []int
	taken := make([]bool, n)
	take := func(from []int, upTo int) {
		dice.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		for _, i := range from {
			if len(chosen) < upTo && !taken[i] {
				taken[i] = true
				chosen = append(chosen, i)
			}
		}
	}
	take(ends, quota)
	take(drawBelow(n), limit)
	slices.Sort(chosen)
	return chosen
}

// drawBelow returns the numbers below n.
func drawBelow(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
