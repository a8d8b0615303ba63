package below

import "github.com/quipu-journal/quipu/journal/store"

// Of returns the store of a *quipu.Runtime. The root package sets it.
var Of func(runtime any) store.Store

// NATS returns the configuration of the bus, a nats.Config of package transport/nats, of a
// quipu.Config. The root package sets it.
var NATS func(config any) any
