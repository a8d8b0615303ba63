package explain_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/explain"
)

// The parts of a stack as the runtime writes it.
const (
	top = "goroutine 41 [running]:\nruntime/debug.Stack()\n\t/go/src/runtime/debug/stack.go:26 +0x5e\n" +
		"github.com/quipu-journal/quipu/workers.(*run).serve.func1()\n\t/mod/quipu/workers/run.go:69 +0x4a\n"
	thrown  = "panic({0x1?, 0x2?})\n\t/go/src/runtime/panic.go:859 +0x132\n"
	cleanup = "main.cleanup()\n\t/app/clean.go:7 +0x1\n"
	nilly   = "runtime.panicmem(...)\n\t/go/src/runtime/panic.go:262\nruntime.sigpanic()\n\t/go/src/runtime/signal_unix.go:925 +0x359\n"
	origin  = "main.(*shop).charge(0x0, {0x1, 0x2})\n\t/app/my shop/charge.go:12 +0x27\n"
	below   = "github.com/quipu-journal/quipu/workers.Handle[...].func1()\n\t/mod/quipu/workers/handle.go:40 +0x1\ncreated by main.main in goroutine 1\n\t/app/main.go:9 +0x1\n"
)

func TestFrame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ stack, want string }{
		"none":                    {"", ""},
		"a panic":                 {top + thrown + origin + below, "/app/my shop/charge.go:12"},
		"a nil pointer":           {top + thrown + nilly + origin + below, "/app/my shop/charge.go:12"},
		"in the library":          {top + thrown + "regexp.MustCompile({0x1, 0x2})\n\t/go/src/regexp/regexp.go:313 +0xb0\n" + origin, "/app/my shop/charge.go:12"},
		"with trimmed paths":      {"panic({0x1?, 0x2?})\n\truntime/panic.go:859 +0x132\nmain.pay()\n\tshop/pay.go:3 +0x27\n", "shop/pay.go:3"},
		"thrown again in a defer": {top + thrown + cleanup + thrown + nilly + origin + below, "/app/my shop/charge.go:12"},
		"without a panic":         {top + origin + below, "/app/my shop/charge.go:12"},
		"in the runtime only":     {top + thrown + below, ""},
		"cut":                     {top + thrown + "main.charge()\n", ""},
		"of another language":     {"Traceback:\n  File \"x.py\", line 3, in pay", ""},
		"without a line":          {top + thrown + "main.charge()\n\t?\n", ""},
	} {
		require.Equal(t, c.want, explain.Frame(c.stack), name)
	}
}
