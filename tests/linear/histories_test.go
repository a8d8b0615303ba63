package linear

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
)

// words are a word and the numbers behind it.
func words(text string) (word string, n []rune) {
	for i, w := range strings.Fields(text) {
		if i == 0 {
			word = w
			continue
		}
		x, err := strconv.Atoi(w)
		if err != nil {
			panic(err)
		}
		n = append(n, rune(x)) //nolint:gosec // a small one
	}
	return word, n
}

// callOf is a call of a hand-written history: a start of a flow, or an operation with
// its id and idempotency key, or a read of a generation. All are of one key.
func callOf(text string) call {
	c, started := map[string]call{
		"two":       {id: 100, verb: doStart, what: start{0, 0}},
		"two-other": {id: 102, verb: doStart, what: start{0, 1}},
		"three":     {id: 104, verb: doStart, what: start{1, 0}},
		"brief":     {id: 106, verb: doStart, what: start{2, 0}},
	}[text]
	word, n := words(text)
	n = append(n, 0, 0)
	if !started {
		c.verb = verb(word)
		if c.id, c.once = n[0], n[1]; c.verb.reads() {
			c.gen, c.id = int(n[0]), 0
		}
	}
	c.key = "k"
	return c
}

// answerOf is what a call said.
func answerOf(text string) (a answer) {
	word, n := words(text)
	word, a.duplicate = strings.CutSuffix(word, "-again")
	at := append(n, 0, 0)
	v := view{done: true, handled: int(at[0]), by: at[1]}
	switch word {
	case "none", "unknown":
		a.notFound, a.unknown = word == "none", word == "unknown"
	case "begun":
		a.gen = max(1, int(at[0]))
	case "asked":
		a.gen = 1
	case "there", "other-input", "other-flow":
		a = answer{gen: 1, already: true, sameFlow: word != "other-flow", sameInput: word != "other-input"}
	case string(store.SignalKept), string(store.SignalMissed):
		a.signal = store.SignalState(word)
	case string(store.SignalConsumed):
		if a.signal = store.SignalConsumed; !a.duplicate {
			a.reached = 1
		}
	case "open", "waiting":
		a.seen = view{phase: open, handled: int(at[0]), waits: word == "waiting"}
	case "gave", "ended": // a wait does not say how many hooks have ended
		a.seen = view{phase: completed, done: true, taken: string(n)}
		if word == "ended" {
			a.seen.handled = len(n)
		}
	case "expired":
		a.seen = view{phase: expired, done: true}
	case "failed":
		a.seen, a.seen.phase = v, failed
	case "stopped", "stopping": // with its completion tasks, or without
		a.seen, a.seen.phase, a.seen.done = v, interrupted, word == "stopped"
	default:
		panic(text)
	}
	return a
}

// history reads operations, each of a client of its own. Those without times follow
// each other.
func history(lines []string) (out []porcupine.Operation) {
	for i, line := range lines {
		from, to := int64(10*i+10), int64(10*i+15)
		if at, rest, ok := strings.Cut(line, ": "); ok {
			if _, err := fmt.Sscanf(at, "%d–%d", &from, &to); err != nil {
				panic(err)
			}
			line = rest
		}
		asked, said, _ := strings.Cut(line, " → ")
		out = append(out,
			porcupine.Operation{ClientId: i, Input: callOf(asked), Call: from, Output: answerOf(said), Return: to})
	}
	return out
}

// I9: the checker lets pass what is right, and only that: testdata/histories.txt.
func TestI9Checker(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/histories.txt")
	require.NoError(t, err)
	accepted, refused, found := strings.Cut(string(text), "# refused: ")
	require.True(t, found)
	for part, want := range map[string]porcupine.CheckResult{accepted: porcupine.Ok, refused: porcupine.Illegal} {
		examples := strings.Split(strings.TrimSpace(part), "\n\n")[1:]
		require.Greater(t, len(examples), 10)
		for _, example := range examples {
			lines := strings.Split(example, "\n\t")
			t.Run(lines[0], func(t *testing.T) {
				h := history(lines[1:])
				require.Equal(t, want, porcupine.CheckOperationsTimeout(model(h), h, time.Minute))
			})
		}
	}
}
