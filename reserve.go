package quipu

import (
	"runtime/metrics"
	"sync"
)

// reserved is how many bytes a process with an engine holds in reserve.
//
// A message leaves some 30 kB of garbage and next to nothing that stays, and the collector runs
// each time the heap has doubled. So a busy engine with its 15 MiB would collect forty times a
// second, in a third of its processor time. The reserve counts as heap and is never touched: it
// takes no memory of the machine, and has the collector wait for as much more garbage.
const reserved = 32 << 20

// reserve is the reserve of this process, for all its engines.
var reserve struct {
	sync.Mutex
	engines int
	bytes   []byte
}

// hold holds the reserve until the returned function is called. A process that has set GOGC, or
// called debug.SetGCPercent, is left as it is.
func hold() (release func()) {
	reserve.Lock()
	defer reserve.Unlock()
	reserve.engines++
	if reserve.bytes == nil && gcPercent() == 100 {
		reserve.bytes = make([]byte, reserved)
	}
	return sync.OnceFunc(func() {
		reserve.Lock()
		defer reserve.Unlock()
		if reserve.engines--; reserve.engines == 0 {
			reserve.bytes = nil
		}
	})
}

// gcPercent reads how much garbage, in percent of what stays, the collector waits for.
func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
