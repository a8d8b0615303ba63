package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/quipu-journal/quipu/observer"
)

// maxSeries bounds the counters that are kept. Beyond it counts are added up without their
// attributes.
const maxSeries = 1000

// counters is an Observer that counts for /debug/counters and passes everything on. A counter's
// name is that of its metric, with the attributes appended:
// quipu.handler.attempts{topic=http,outcome=ok}.
type counters struct {
	observer.Observer

	mu sync.Mutex
	n  map[string]int64
}

func newCounters(next observer.Observer) *counters {
	return &counters{Observer: next, n: map[string]int64{}}
}

// Count implements observer.Observer.
func (c *counters) Count(metric string, n int64, attributes ...string) {
	c.Observer.Count(metric, n, attributes...)
	name := series(metric, attributes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.n[name]; !known && len(c.n) >= maxSeries {
		name = metric
	}
	c.n[name] += n
}

func series(metric string, attributes []string) string {
	if len(attributes) < 2 {
		return metric
	}
	var b strings.Builder
	b.WriteString(metric)
	separator := "{"
	for i := 0; i+1 < len(attributes); i += 2 {
		b.WriteString(separator + attributes[i] + "=" + attributes[i+1])
		separator = ","
	}
	b.WriteString("}")
	return b.String()
}

// ServeHTTP writes the counters as one JSON object.
func (c *counters) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	text, err := json.Marshal(c.n)
	c.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // the caller may have gone
}
