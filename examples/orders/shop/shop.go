package shop

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/examples/orders"
)

const (
	latency = 2 * time.Millisecond // of every POST
	maxBody = 256 << 10            // bytes of a request
	maxKeys = 1_000_000            // idempotency keys in memory
	maxKey  = 200                  // bytes of an Idempotency-Key
)

// kinds are the kinds of requests; each is the path that they are posted to.
var kinds = []string{"charges", "reservations", "shipments", "refunds", "invoices"}

// request is the body of every POST; each kind reads its own fields.
type request struct {
	Order    string        `json:"order"`
	Card     string        `json:"card"`
	Currency string        `json:"currency"`
	Amount   json.Number   `json:"amount"`
	Lines    []orders.Item `json:"lines"`
}

// answer is a status and a body that becomes JSON.
type answer struct {
	status int
	body   any
}

// applied is the result of a key: its answer never changes.
type applied struct {
	content [sha256.Size]byte
	answer  answer
}

// Charge is an applied charge.
type Charge struct {
	ID       string      `json:"id"`
	Order    string      `json:"order"`
	Currency string      `json:"currency"`
	Amount   json.Number `json:"amount"`
}

// Count counts the requests of one kind, and their results.
type Count struct {
	Requests int `json:"requests"` // all
	Applied  int `json:"applied"`  // keys that took effect
	Repeated int `json:"repeated"` // requests answered from what was stored
	Faults   int `json:"faults"`   // requests answered with 503
}

// Shop has the services and everything they have applied.
type Shop struct {
	http.Handler

	mu      sync.Mutex
	keys    map[string]applied
	faults  map[string]int // 503s so far, by key
	counts  map[string]Count
	charges []Charge
}

// New returns a shop that has applied nothing.
func New() *Shop {
	mux := http.NewServeMux()
	s := &Shop{Handler: mux, keys: map[string]applied{}, faults: map[string]int{}, counts: map[string]Count{}}
	for _, kind := range kinds {
		mux.HandleFunc("POST /"+kind, func(w http.ResponseWriter, r *http.Request) { s.post(r, kind).write(w) })
	}
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { answer{http.StatusOK, s.Counts()}.write(w) })
	mux.HandleFunc("GET /charges", func(w http.ResponseWriter, _ *http.Request) { answer{http.StatusOK, s.Charges()}.write(w) })
	return s
}

// Charges returns the applied charges.
func (s *Shop) Charges() []Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.charges)
}

// Counts returns the counts by kind: charges, reservations, shipments, refunds, invoices.
func (s *Shop) Counts() map[string]Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

func (s *Shop) post(r *http.Request, kind string) answer {
	time.Sleep(latency)
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > maxKey {
		return problem(http.StatusBadRequest, fmt.Sprintf("Idempotency-Key is required, at most %d bytes", maxKey))
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if _, is := errors.AsType[*http.MaxBytesError](err); is {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the limit is %d bytes", maxBody))
	}
	var q request
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		return problem(http.StatusBadRequest, "no JSON: "+err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.counts[kind]
	count.Requests++
	a := s.once(kind, key, sha256.Sum256(body), &q, &count)
	s.counts[kind] = count
	return a
}

// once applies a key once. A flaky card's first request fails before that, its second one after
// it: a client that gives up then has charged without knowing.
func (s *Shop) once(kind, key string, content [sha256.Size]byte, q *request, count *Count) answer {
	flaky := kind == "charges" && orders.Flaky(q.Card)
	if flaky && s.faults[key] == 0 {
		return s.fault(key, count)
	}
	known, is := s.keys[key]
	switch {
	case is && known.content != content:
		return problem(http.StatusUnprocessableEntity, "the key was used for other content")
	case is:
		count.Repeated++
		return known.answer
	case len(s.keys) == maxKeys:
		return problem(http.StatusInsufficientStorage, "too many keys")
	}
	a := s.apply(kind, key, q)
	s.keys[key] = applied{content, a}
	if a.status == http.StatusCreated {
		count.Applied++
		if flaky && s.faults[key] == 1 {
			return s.fault(key, count)
		}
	}
	return a
}

func (s *Shop) fault(key string, count *Count) answer {
	s.faults[key]++
	count.Faults++
	return problem(http.StatusServiceUnavailable, "try again")
}

// apply does the work of a kind. Package orders has the rules.
func (s *Shop) apply(kind, key string, q *request) answer {
	if q.Order == "" {
		return problem(http.StatusBadRequest, "order is required")
	}
	id := kind[:2] + "_" + key[:min(len(key), 12)]
	switch kind {
	case "charges":
		if orders.Refused(q.Card) {
			return problem(http.StatusPaymentRequired, "card refused")
		}
		s.charges = append(s.charges, Charge{ID: id, Order: q.Order, Currency: q.Currency, Amount: q.Amount})
		return answer{http.StatusCreated, map[string]any{"id": id, "amount": q.Amount, "currency": q.Currency}}
	case "reservations":
		for _, l := range q.Lines {
			if orders.SoldOut(l.SKU) {
				return problem(http.StatusConflict, "sold out: "+l.SKU)
			}
		}
	}
	return answer{http.StatusCreated, map[string]any{"id": id}}
}

func problem(status int, text string) answer { return answer{status, map[string]any{"error": text}} }

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // a caller that has gone asks again
}
