package engine

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

// reserve is the reserve of this process, made when its first engine runs.
var reserve = sync.OnceValue(func() []byte { return reserveAt(gcPercent()) })

// reserveAt is nil in a process that has set GOGC, or called debug.SetGCPercent: it has decided.
func reserveAt(percent uint64) []byte {
	if percent != 100 {
		return nil
	}
	return make([]byte, reserved)
}

// gcPercent reads how much garbage, in percent of what stays, the collector waits for.
func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
