package work

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/transport"
	"github.com/quipu-journal/quipu/workers"
)

// posted is a delivery of a fixed message that does nothing.
type posted struct {
	transport.Delivery
	msg transport.Message
}

func (d *posted) Message() *transport.Message { return &d.msg }
func (d *posted) Err() error                  { return nil }

// FuzzRequest: a delivery is a request for this worker, or poison with a reason (T3, T6).
func FuzzRequest(f *testing.F) {
	id := journal.GUID{7, 6: 0x80, 8: 0x80}
	f.Add(wire.Encode(&wire.Request{
		Space: "shop", Job: id.String(), Request: id.String(), DAD: ",0,0", Topic: "pay", Turn: 1, Attempt: 1, Activity: "charge",
		Input: []byte(`{"a":1}`),
	}), 1)
	f.Fuzz(func(t *testing.T, body []byte, turn int) {
		r := &run{
			rt: &Runtime{cfg: Config{Space: "shop"}}, h: &port.Handler{Topic: "pay"},
			d: &posted{msg: transport.Message{Body: body, Header: transport.Header{GUID: id, Turn: turn}}},
		}
		reason, err := r.decode()
		if err != nil {
			require.Contains(t, []string{reasonUndecodable, reasonForeign}, reason)
			require.LessOrEqual(t, len(wire.CutText(err.Error())), wire.MaxText)
			return
		}
		require.Empty(t, reason)
		require.Equal(t, id, r.request)
		require.Equal(t, []any{"shop", "pay", turn}, []any{r.req.Space, r.req.Topic, r.req.Turn})
		require.True(t, turn > 0 && r.req.Activity != "")
		_, err = collation.ParseDAD(r.req.DAD)
		require.NoError(t, err)
	})
}

// FuzzUndoOrder: the input of a request of the flow of compensations names a job and a
// request, or is refused; an input of any other flow is no order (3.5).
func FuzzUndoOrder(f *testing.F) {
	order, err := json.Marshal(collation.UndoOrder{
		Job: journal.JobID{1, 6: 0x80}.String(), Request: journal.GUID{2, 6: 0x80}.String(), Generation: 1, Flow: "trip",
		Version:  "1",
		Activity: "fn", DAD: ",0,0", Code: 500, Message: "no", Input: []byte(`{"a":1}`),
	})
	require.NoError(f, err)
	f.Add(order)
	f.Fuzz(func(t *testing.T, in []byte) {
		o, original, err := undoOrder(&wire.Request{Flow: "order"}, in)
		require.True(t, o == nil && original == nil && err == nil)
		o, original, err = undoOrder(&wire.Request{Flow: flow.UndoName}, in)
		if err != nil {
			require.True(t, o == nil && original == nil)
			return
		}
		require.Equal(t, o.Job, original.Job.String())
		require.Equal(t, o.Request, original.Request.String())
		_, err = collation.ParseDAD(o.DAD)
		require.NoError(t, err, "the address of the request that is undone is one")
	})
}

// FuzzHTTPInput: an input of the http handler is refused, or becomes a request to a host
// over http, with the key if there is one (5.3).
func FuzzHTTPInput(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://bank.example/charge","method":"post","headers":{"X":"y"},"body":{"a":1}}`,
		`{"url":"http://h/x?${key}","method":"PUT","body":"text","verify":{"url":"http://h/${key}","settle":"1s","mode":"strict"}}`,
		`{"url":"file:///etc/passwd"}`, `{"url":"http://"}`, `{"url":"http://h","method":"A B"}`, `{"url":"http://h","headers":{"a\r\nb":"c","Host":"z"}}`,
		`{"url":"http://h","verify":{"settle":"-1s"}}`,
		`{"url":"https://u:${secret:a}@h:1/${secret:b}?k=${secret:a}","headers":{"A":"Bearer ${secret:c}"}}`,
		`{"url":"https://${secret:a}/"}`, `{"url":"https://h/${secret:a b}"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var in HTTPRequest
		if json.Unmarshal(raw, &in) != nil {
			return // refused before the handler runs
		}
		if in.Method = strings.ToUpper(in.Method); in.Method == "" {
			in.Method = http.MethodGet
		}
		const secret = "s3/c@r:e?t#%&+ x"
		host := ""
		c := &httpClient{secrets: func(string) (workers.Secret, error) {
			return workers.Secret{Value: secret, Hosts: []string{host}}, nil
		}}
		if options, err := c.options(&in); err == nil {
			require.NotEmpty(t, options)
		}
		if in.check() != nil {
			return
		}
		plain, err := url.Parse(reference.ReplaceAllLiteralString(in.URL, "x"))
		require.NoError(t, err)
		host = plain.Hostname()
		s, err := c.resolve(&in)
		if err != nil {
			require.NotContains(t, err.Error(), secret)
			return
		}
		q, err := in.build(t.Context(), s)
		if err != nil {
			require.NotContains(t, err.Error(), "/", "a url may hold secrets (4.5)")
			return
		}
		require.Contains(t, []string{"http", "https"}, q.URL.Scheme)
		require.NotEmpty(t, q.URL.Host)
		require.Equal(t, []string{plain.Scheme, host}, []string{q.URL.Scheme, q.URL.Hostname()}, "no secret leads elsewhere (S14)")
		said := said(q, 500)
		require.NotContains(t, said, "@", "no user, no password (4.5)")
		inner := s.unsaid(q, &url.Error{Op: "Get", URL: in.URL, Err: errors.New("refused")})
		require.True(t, strings.HasSuffix(inner.Error(), ": refused"))
	})
}

// FuzzHTTPAnswer: any answer of a receiver becomes an output that can be recorded, and a
// delay within its limit.
func FuzzHTTPAnswer(f *testing.F) {
	f.Add("application/json", `{"b":1.50,"a":"\u00e9"}`, "120")
	f.Add("application/problem+json; charset=utf-8", `{"a":1,"a":2}`, "Fri, 31 Dec 9999 23:59:59 GMT")
	f.Add("text/html", "a\x00b\xff", "-1")
	f.Fuzz(func(t *testing.T, kind, body, after string) {
		out := HTTPResponse{
			Status: 200, Headers: flat(http.Header{"A": {kind, after}}, nil, &sent{}), Body: readable(kind, []byte(body)),
		}
		got, err := canonical.Payload(out.Body)
		require.NoError(t, err)
		require.Equal(t, string(got), string(out.Body))
		_, err = json.Marshal(out)
		require.NoError(t, err)
		if d, ok := retryAfter(after); ok {
			require.True(t, d >= 0 && d <= MaxRetryAfter, "%s", d)
		}
	})
}

// FuzzBuiltins: sleep and fail accept their input or refuse it with 400; a refusal is
// never a success.
func FuzzBuiltins(f *testing.F) {
	f.Add([]byte(`{"for":"1h"}`))
	f.Add([]byte(`{"for":"-1s","code":402,"message":"no","times":2,"data":{"a":1}}`))
	f.Add([]byte(`{"code":200}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		over, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), errors.New("over"))
		defer cancel()
		if _, err := sleep(over, in); err != nil {
			refused, ok := errors.AsType[*workers.Error](err)
			require.True(t, err.Error() == "over" || ok && refused.Code == http.StatusBadRequest, "%v", err)
		}
		_, err := fail(over, in)
		require.Error(t, err)
		r := failure(err, false)
		_, err = r.Journal()
		require.NoError(t, err, "it can be recorded: %+v", r)
	})
}

// FuzzLookedUp: the verifier of the http handler judges or refuses any recorded result,
// and never makes a call for an effect that the receiver refused (3.3).
func FuzzLookedUp(f *testing.F) {
	f.Add([]byte(`{"status":201,"headers":{},"body":{}}`))
	f.Add([]byte(`{"status":402}`))
	f.Fuzz(func(t *testing.T, recorded []byte) {
		called := false
		outside := roundTrip(func(*http.Request) (*http.Response, error) { called = true; return nil, errors.New("away") })
		look := &httpLook{
			client: &httpClient{client: http.Client{Transport: outside}},
			ask:    HTTPVerify{Method: http.MethodGet, URL: "http://h/x", Mode: effects.Warn},
		}
		a, err := look.Verify(t.Context(), effects.Question{Key: "k", Recorded: append([]byte{}, recorded...)})
		var was HTTPResponse
		switch {
		case json.Unmarshal(recorded, &was) != nil:
			require.Error(t, err)
			require.False(t, called)
		case was.Status < 200 || was.Status > 299:
			require.NoError(t, err)
			require.Equal(t, effects.StateDone, a.State)
			require.False(t, called)
		default:
			require.True(t, called)
			require.Error(t, err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
