package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// Limit is the range of a number or a time that operators set; of a time in nanoseconds.
type Limit struct{ Least, Most int64 }

// limits is the one table of these ranges, by the names of the fields of a Config: this one, that
// of the root package, and the flags of the worker.
var limits = map[string]Limit{
	"Aside":       {1, math.MaxInt32},
	"Committers":  {1, math.MaxInt32},
	"Concurrency": {1, transport.MaxSlots},
	"HotMiB":      {0, math.MaxInt32},
	"LaneSlots":   {1, transport.MaxSlots},
	"Lanes":       {1, transport.MaxLanes},
	"MaxBatch":    {1, store.MaxBatch},
	"MaxConns":    {1, math.MaxInt32},
	"StartSlots":  {1, transport.MaxSlots},

	"AckWait":  {int64(30 * time.Millisecond), int64(time.Hour)},
	"Drain":    {0, math.MaxInt64},
	"Lease":    {int64(30 * time.Millisecond), int64(time.Hour)},
	"Resend":   {int64(30 * time.Millisecond), int64(time.Hour)}, // below it the sweeper would look for what is just under way
	"Wait":     {0, math.MaxInt64},
	"WaitLook": {int64(10 * time.Millisecond), int64(time.Hour)}, // each look is a query
}

// CheckNumber says why the field cannot have the number, or nil. 0 stands for its default and is
// always in range. It panics for a field without a range.
func CheckNumber(field string, n int) error {
	l, ok := limits[field]
	switch {
	case !ok:
		panic("engine: no limit of " + field)
	case n != 0 && int64(n) < l.Least:
		return fmt.Errorf("%d: at least %d, or 0 for the default", n, max(l.Least, 1))
	case int64(n) > l.Most:
		return fmt.Errorf("%d: at most %d", n, l.Most)
	}
	return nil
}

// CheckTime is CheckNumber for a time.
func CheckTime(field string, d time.Duration) error {
	l, ok := limits[field]
	switch {
	case !ok:
		panic("engine: no limit of " + field)
	case d < 0 && l.Least == 0:
		return fmt.Errorf("%s: a positive time such as 10s, or 0 for the default", d)
	case d != 0 && int64(d) < l.Least, int64(d) > l.Most:
		return fmt.Errorf("%s: from %s to %s, or 0 for the default", d, time.Duration(l.Least), time.Duration(l.Most))
	}
	return nil
}
