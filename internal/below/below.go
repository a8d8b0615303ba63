package below

import (
	"context"

	"github.com/quipu-journal/quipu/internal/inspect"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Of returns the store of a *quipu.Runtime. The root package sets it.
var Of func(runtime any) *postgres.Store

// Witness returns the newest mark that the space's engines left in the NATS of a *quipu.Runtime
// (S13); zero if there is none, or no NATS. foreign says why another one that is there is none of the
// space; nil: all are. The root package sets it.
var Witness func(ctx context.Context, runtime any) (newest store.Mark, foreign, err error)

// Reader returns the reader of the jobs of a *quipu.Runtime. The root package sets it.
var Reader func(runtime any) *inspect.Reader

// Observer returns the observer of a *quipu.Runtime. The root package sets it.
var Observer func(runtime any) observer.Observer
