package below

import "github.com/quipu-journal/quipu/journal/store"

// Of gives the store of a *quipu.Runtime. The root package sets it.
var Of func(runtime any) store.Store
