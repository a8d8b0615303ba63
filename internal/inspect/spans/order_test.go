package spans_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/ordertest"
	"github.com/quipu-journal/quipu/quiputest"
	"github.com/quipu-journal/quipu/view"
)

// The tree of a job with every kind of activity, and of its child, as it is: attempts and what is
// between them, waits as time, steps with their own digits (O1).
func TestTree(t *testing.T) {
	t.Parallel()
	ordertest.Play(t, func(w io.Writer, j *quiputest.Job) {
		tree := built(j.Journal())
		oneTree(t, tree)
		fmt.Fprintf(w, "%s %s\n%s", tree.Key, tree.State, text(tree))
	})
}

// text has times in seconds, because shorter ones differ between runs.
func text(tree *view.Tree) string {
	var b strings.Builder
	depths := tree.Depths()
	for i := range tree.Spans {
		s := &tree.Spans[i]
		fmt.Fprintf(&b, "%9s %9s %s%s", seconds(s.Start-tree.Spans[0].Start), seconds(s.End-s.Start), strings.Repeat("  ", depths[i]),
			s.Name())
		for _, a := range s.Attributes {
			switch name, ok := strings.CutPrefix(a.Key, "quipu."); {
			case !ok || name == "job" || name == "writer" || name == "request" || name == "child" || name == "effect" || name == "signal":
			case a.Text != "":
				fmt.Fprintf(&b, " %s=%s", name, a.Text)
			default:
				fmt.Fprintf(&b, " %s=%d", name, a.Number)
			}
		}
		for _, l := range s.Links {
			fmt.Fprintf(&b, " →%s", l.Why)
		}
		if s.Failure != nil {
			fmt.Fprintf(&b, " ! %s", s.Failure.Class)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func seconds(micros int64) string {
	if micros < 0 {
		return "open"
	}
	return (time.Duration(micros) * time.Microsecond).Round(time.Second).String()
}
