package below

import "github.com/quipu-journal/quipu/journal/store"

// Of returns the store of a *quipu.Runtime. The root package sets it.
var Of func(runtime any) store.Store
