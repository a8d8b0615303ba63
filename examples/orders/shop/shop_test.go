package shop

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type client struct {
	t   *testing.T
	url string
}

func newClient(t *testing.T) client {
	t.Helper()
	server := httptest.NewServer(New())
	t.Cleanup(server.Close)
	return client{t, server.URL}
}

func (c client) post(path, key, body string) (int, string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+path, strings.NewReader(body))
	require.NoError(c.t, err)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(text)
}

func (c client) get(path string, v any) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
	require.NoError(c.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer func() { _ = resp.Body.Close() }()
	require.NoError(c.t, json.NewDecoder(resp.Body).Decode(v))
}

const charge = `{"order":"o1","card":"tok_visa_1","currency":"EUR","amount":0.30}`

// TestChargeIsAppliedOncePerKey_E3: the receiver's half of class Idempotent.
func TestChargeIsAppliedOncePerKey_E3(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	status, first := c.post("/charges", "k1", charge)
	require.Equal(t, http.StatusCreated, status)
	status, again := c.post("/charges", "k1", charge)
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, first, again)
	status, _ = c.post("/charges", "k1", strings.Replace(charge, "0.30", "99", 1))
	require.Equal(t, http.StatusUnprocessableEntity, status)
	var charges []Charge
	c.get("/charges", &charges)
	require.Len(t, charges, 1)
	require.Equal(t, json.Number("0.30"), charges[0].Amount)
	counts := map[string]Count{}
	c.get("/stats", &counts)
	require.Equal(t, Count{Requests: 3, Applied: 1, Repeated: 1}, counts["charges"])
}

// TestFlakyCard: 503 before and after the charge is applied, then its answer.
func TestFlakyCard(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	body := strings.Replace(charge, "visa", "flaky", 1)
	for _, want := range []int{
		http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusCreated, http.StatusCreated,
	} {
		status, _ := c.post("/charges", "k1", body)
		require.Equal(t, want, status)
	}
	counts := map[string]Count{}
	c.get("/stats", &counts)
	require.Equal(t, Count{Requests: 4, Applied: 1, Repeated: 2, Faults: 2}, counts["charges"])
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, q := range []struct {
		path, key, body string
		want            int
	}{
		{"/charges", "k1", strings.Replace(charge, "visa", "refused", 1), http.StatusPaymentRequired},
		{"/reservations", "k2", `{"order":"o1","lines":[{"sku":"tea-assam-100"}]}`, http.StatusCreated},
		{"/reservations", "k3", `{"order":"o1","lines":[{"sku":"tea-assam-100"},{"sku":"kettle-copper"}]}`, http.StatusConflict},
		{"/shipments", "k4", `{"order":"o1"}`, http.StatusCreated},
		{"/refunds", "k5", `{}`, http.StatusBadRequest},
		{"/refunds", "", `{"order":"o1"}`, http.StatusBadRequest},
		{"/invoices", "k6", `{`, http.StatusBadRequest},
		{"/invoices", "k7", `"` + strings.Repeat("x", maxBody) + `"`, http.StatusRequestEntityTooLarge},
	} {
		status, text := c.post(q.path, q.key, q.body)
		require.Equal(t, q.want, status, "%s %s: %s", q.path, q.key, text)
	}
}
