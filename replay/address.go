package replay

import (
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
)

// This is the verifier's own reading of addresses (1.9). It works on the canonical text, in which
// each segment follows a comma, and four or more equal segments are written once with their
// number. It refuses nothing: of a text that is no address it makes another one, for the laws to
// compare.

// rootAddress is the address of every trigger.
const rootAddress collation.DAD = ",0"

const (
	maxDepth = 100_000 // of an address, in segments
	shortest = 4       // equal segments that are written once
)

// firstRun reads the segments that the address begins with: their index, how often it is
// repeated, and the rest of the address.
func firstRun(dad collation.DAD) (index string, count int, rest collation.DAD) {
	text, _, _ := strings.Cut(string(dad[1:]), ",")
	rest = dad[1+len(text):]
	index, times, repeated := strings.Cut(text, "^")
	if !repeated {
		return text, 1, rest
	}
	if count, err := strconv.Atoi(times); err == nil && count > 0 && count <= maxDepth {
		return index, count, rest
	}
	return text, 1, rest
}

// depth is the number of segments; a trigger's is 1.
func depth(dad collation.DAD) int {
	n := 0
	for dad != "" {
		_, count, rest := firstRun(dad)
		n, dad = n+count, rest
	}
	return n
}

// prefix is the address of the ancestor with that many segments, or the address itself if it has
// no more.
func prefix(dad collation.DAD, segments int) collation.DAD {
	for rest := dad; rest != ""; {
		index, count, behind := firstRun(rest)
		if count > segments {
			return extend(dad[:len(dad)-len(rest)], index, segments)
		}
		segments, rest = segments-count, behind
	}
	return dad
}

// extend appends n equal segments. Those at the end that are equal to them are counted with them.
func extend(dad collation.DAD, index string, n int) collation.DAD {
	if n == 0 {
		return dad
	}
	before, segment := string(dad), ","+index
	if at := strings.LastIndexByte(before, ','); at >= 0 {
		if last, count, _ := firstRun(dad[at:]); last == index && count > 1 {
			before, n = before[:at], n+count
		}
	}
	for equal := true; equal; {
		if before, equal = strings.CutSuffix(before, segment); equal {
			n++
		}
	}
	if n < shortest {
		return collation.DAD(before + strings.Repeat(segment, n))
	}
	return collation.DAD(before + segment + "^" + strconv.Itoa(n))
}

// child is the address of a child: one segment 0 more.
func child(dad collation.DAD) collation.DAD { return extend(dad, "0", 1) }

// withIndex is the address of the pass with that index: its last segment is the index (C6).
func withIndex(dad collation.DAD, index int) collation.DAD {
	return extend(prefix(dad, depth(dad)-1), strconv.Itoa(index), 1)
}

// addressOf is where the reader at the address dad sees the output of an activity (1.9, 1.10): of
// one that dominates the reader, along the reader's own address; of another one, where the reader
// sees its immediate dominator, and one segment more. Without a reader it is the flow's output that
// sees it: an activity that makes no passes has one address.
func addressOf(act, reader *flow.Activity, dad collation.DAD) collation.DAD {
	if reader == nil {
		return extend("", "0", act.Depth+1)
	}
	levels := 0
	for ; !act.Dominates(reader); act = act.Parent {
		levels++
	}
	return extend(prefix(dad, act.Depth+1), "0", levels)
}
