package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/examples/orders"
)

// Limits of the service.
const (
	maxBody = 256 << 10 // bytes of a request
	maxKeys = 1_000_000 // idempotency keys in memory
	maxKey  = 200       // bytes of an Idempotency-Key
)

// kinds are what can be applied; each is the path it is posted to.
var kinds = []string{"charges", "reservations", "shipments", "refunds", "invoices"}

// request is the body of every POST; each kind reads its own fields.
type request struct {
	Order       string        `json:"order"`
	Card        string        `json:"card"`
	Currency    string        `json:"currency"`
	Amount      json.Number   `json:"amount"`
	Charge      string        `json:"charge"`
	Reservation string        `json:"reservation"`
	Lines       []orders.Item `json:"lines"`
}

// applied is what a key did, and what it answers for ever.
type applied struct {
	content [sha256.Size]byte
	status  int
	body    []byte
}

// Charge is a charge that was applied, as GET /charges lists it.
type Charge struct {
	ID       string      `json:"id"`
	Order    string      `json:"order"`
	Currency string      `json:"currency"`
	Amount   json.Number `json:"amount"`
	Key      string      `json:"key"`
}

// Count says of one kind how often it was asked and what came of it.
type Count struct {
	Requests int `json:"requests"` // all
	Applied  int `json:"applied"`  // keys that took effect
	Refused  int `json:"refused"`  // keys that were refused for good
	Repeated int `json:"repeated"` // requests answered from what was stored
	Faults   int `json:"faults"`   // requests answered with 503
}

type service struct {
	latency time.Duration

	mu      sync.Mutex
	keys    map[string]*applied
	faults  map[string]int // 503s so far, by key
	counts  map[string]*Count
	charges []Charge
}

func newService(latency time.Duration) *service {
	s := &service{latency: latency, keys: map[string]*applied{}, faults: map[string]int{}, counts: map[string]*Count{}}
	for _, kind := range kinds {
		s.counts[kind] = &Count{}
	}
	return s
}

func (s *service) handler() http.Handler {
	mux := http.NewServeMux()
	for _, kind := range kinds {
		mux.HandleFunc("POST /"+kind, func(w http.ResponseWriter, r *http.Request) { s.post(w, r, kind) })
	}
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) { s.show(w, func() any { return s.counts }) })
	mux.HandleFunc("GET /charges", func(w http.ResponseWriter, _ *http.Request) { s.show(w, func() any { return s.charges }) })
	return mux
}

func (s *service) show(w http.ResponseWriter, what func() any) {
	s.mu.Lock()
	text, err := json.Marshal(what())
	s.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, text)
}

func (s *service) post(w http.ResponseWriter, r *http.Request, kind string) {
	time.Sleep(s.latency)
	key := r.Header.Get("Idempotency-Key")
	if key == "" || len(key) > maxKey {
		problem(w, http.StatusBadRequest, fmt.Sprintf("Idempotency-Key is required, at most %d bytes", maxKey))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		problem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the limit is %d bytes", tooLarge.Limit))
		return
	}
	var q request
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&q)
	}
	if err != nil {
		problem(w, http.StatusBadRequest, "no JSON: "+err.Error())
		return
	}
	status, text := s.once(kind, key, body, &q)
	answer(w, status, text)
}

// once applies a key once. A flaky card's first request fails before that, its
// second after it: whoever gives up there has charged without knowing.
func (s *service) once(kind, key string, body []byte, q *request) (int, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, content := s.counts[kind], sha256.Sum256(body)
	count.Requests++
	flaky := kind == "charges" && orders.Flaky(q.Card)
	if flaky && s.faults[key] == 0 {
		return s.fault(count, key)
	}
	known := s.keys[key]
	switch {
	case known != nil && known.content != content:
		return http.StatusUnprocessableEntity, message("the key was used for other content")
	case known != nil:
		count.Repeated++
		return known.status, known.body
	case len(s.keys) == maxKeys:
		return http.StatusInsufficientStorage, message("too many keys")
	}
	status, text := s.apply(kind, key, q)
	s.keys[key] = &applied{content: content, status: status, body: text}
	if status >= http.StatusBadRequest {
		count.Refused++
		return status, text
	}
	count.Applied++
	if flaky && s.faults[key] == 1 {
		return s.fault(count, key)
	}
	return status, text
}

func (s *service) fault(count *Count, key string) (int, []byte) {
	s.faults[key]++
	count.Faults++
	return http.StatusServiceUnavailable, message("try again")
}

// apply does what the kind is for. The rules are those of package orders.
func (s *service) apply(kind, key string, q *request) (int, []byte) {
	if q.Order == "" {
		return http.StatusBadRequest, message("order is required")
	}
	id := kind[:2] + "_" + key[:min(len(key), 12)]
	switch kind {
	case "charges":
		if orders.Refused(q.Card) {
			return http.StatusPaymentRequired, message("card refused")
		}
		c := Charge{ID: id, Order: q.Order, Currency: q.Currency, Amount: q.Amount, Key: key}
		s.charges = append(s.charges, c)
		return http.StatusCreated, encode(map[string]any{"id": id, "amount": q.Amount, "currency": q.Currency})
	case "reservations":
		for _, l := range q.Lines {
			if orders.SoldOut(l.SKU) {
				return http.StatusConflict, message("sold out: " + l.SKU)
			}
		}
	}
	return http.StatusCreated, encode(map[string]any{"id": id})
}

func message(text string) []byte { return encode(map[string]string{"error": text}) }

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers that came as JSON
	}
	return text
}

func problem(w http.ResponseWriter, status int, text string) { answer(w, status, message(text)) }

func answer(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a caller that has gone asks again
}
