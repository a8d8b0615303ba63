package quipu_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/workers"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// example runs a space with the flow and the handlers, if any, until end is called.
func example(source string, reg ...*workers.Registry) (rt *quipu.Runtime, dsn string, end func()) {
	cfg := quipu.Config{}
	for _, r := range reg {
		cfg.Workers = r
	}
	return exampleOf(cfg, source)
}

// exampleOf is example with settings of its own.
func exampleOf(cfg quipu.Config, sources ...string) (rt *quipu.Runtime, dsn string, end func()) {
	t := &exampleT{}
	place := exampleConfig(t)
	cfg.Postgres, cfg.NATS, cfg.Lanes = place.Postgres, place.NATS, place.Lanes
	ctx, stop := context.WithCancel(context.Background())
	rt, err := quipu.Open(ctx, cfg)
	must(err)
	for _, source := range sources {
		must(rt.Deploy(ctx, parsed(source)))
	}
	done := make(chan error, 1)
	go func() { done <- rt.Run(ctx) }()
	return rt, cfg.Postgres, func() {
		stop()
		must(<-done)
		rt.Close()
		t.end()
	}
}

// exampleConfig is a space that is empty, on servers that last until the example ends. It
// has few lanes: each is a consumer of NATS, whose end takes longer than most examples.
func exampleConfig(t *exampleT) quipu.Config {
	late := time.AfterFunc(devtest.Patience, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("an example has not ended within %v", devtest.Patience))
	})
	t.Cleanup(func() { late.Stop() })
	return quipu.Config{Postgres: world.Database(t, ""), NATS: devtest.NATS(t).URL(), Lanes: 2}
}

func parsed(source string) *flow.Flow {
	f, err := flow.Parse("flow.yaml", []byte(source))
	must(err)
	return f
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// exampleT is what servers for tests need of a test; examples have none.
type exampleT struct {
	testing.TB
	cleanups []func()
}

func (*exampleT) Helper()                           {}
func (*exampleT) Context() context.Context          { return context.Background() }
func (t *exampleT) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }
func (*exampleT) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*exampleT) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (t *exampleT) TempDir() string {
	dir, err := os.MkdirTemp("", "quipu-example-")
	must(err)
	t.Cleanup(func() { must(os.RemoveAll(dir)) })
	return dir
}

func (t *exampleT) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
