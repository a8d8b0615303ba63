package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/effects"
)

// Limits of the verifier of the built-in http handler.
const (
	// DefaultSettle is how long the verifier waits after a 404 or 410 before it asks once
	// more. MaxSettle bounds HTTPVerify.Settle.
	DefaultSettle = 2 * time.Second
	MaxSettle     = 30 * time.Second

	// askTimeout bounds the verifier's own requests.
	askTimeout = 10 * time.Second
)

// keyTemplate stands for the effect's key in url and headers of an HTTPVerify.
const keyTemplate = "${key}"

// HTTPVerify is the request by which the built-in http handler finds out whether its call
// was done (3.3). The request must not change anything. In URL and header values ${key}
// stands for the effect's key, which is also sent as Idempotency-Key, and ${secret:NAME}
// for a secret.
//
// 2xx means done: an unfinished call gets that answer as its output, a completed one
// keeps its recorded output. 404 and 410 mean not done; for an unfinished call the
// receiver must say so twice, Settle apart. Everything else is unknown.
type HTTPVerify struct {
	Method  string            `json:"method"` // GET (the default) or HEAD
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Mode    effects.Mode      `json:"mode"`   // strict, warn (the default) or human
	Settle  string            `json:"settle"` // a duration; default DefaultSettle, at most MaxSettle
}

// options make the call of an http handler an effect: Idempotent, or Guarded where it has
// a verifier, because then the verifier decides what happens after an unknown outcome.
func (c *httpClient) options(in *HTTPRequest) ([]effects.Option, error) {
	if in.Verify == nil {
		return []effects.Option{effects.Idempotent}, nil
	}
	look := &httpLook{client: c, ask: *in.Verify, record: in.RecordHeaders, settle: DefaultSettle}
	if err := look.check(); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	v := effects.VerifyWithin(look, askTimeout+look.settle)
	return []effects.Option{effects.Guarded, effects.Verify(v, look.ask.Mode)}, nil
}

// httpLook is the verifier that an HTTPVerify describes.
type httpLook struct {
	client *httpClient
	ask    HTTPVerify
	record []string // HTTPRequest.RecordHeaders
	settle time.Duration
}

// check fills in the defaults and finds what is wrong.
func (v *httpLook) check() error {
	v.ask.Method = strings.ToUpper(v.ask.Method)
	if v.ask.Method == "" {
		v.ask.Method = http.MethodGet
	}
	if v.ask.Mode == "" {
		v.ask.Mode = effects.Warn
	}
	if v.ask.Settle != "" {
		var err error
		if v.settle, err = time.ParseDuration(v.ask.Settle); err != nil || v.settle < 0 || v.settle > MaxSettle {
			return fmt.Errorf("settle %.40q: wanted is a duration of 0s to %s", v.ask.Settle, MaxSettle)
		}
	}
	switch {
	case v.ask.Method != http.MethodGet && v.ask.Method != http.MethodHead:
		return fmt.Errorf("method %.20q: GET or HEAD, it must not change anything", v.ask.Method)
	case !v.ask.Mode.Valid():
		return fmt.Errorf("mode %.20q: strict, warn or human", string(v.ask.Mode))
	}
	q := v.request("")
	return q.check()
}

func (v *httpLook) request(key string) HTTPRequest {
	q := HTTPRequest{
		Method: v.ask.Method, URL: strings.ReplaceAll(v.ask.URL, keyTemplate, key), Headers: map[string]string{},
		RecordHeaders: v.record,
	}
	for name, value := range v.ask.Headers {
		q.Headers[name] = strings.ReplaceAll(value, keyTemplate, key)
	}
	return q
}

// Verify implements effects.Verifier.
func (v *httpLook) Verify(ctx context.Context, q effects.Question) (effects.Answer, error) {
	unfinished := q.Recorded == nil
	if !unfinished {
		var recorded HTTPResponse
		if err := json.Unmarshal(q.Recorded, &recorded); err != nil {
			return effects.Answer{}, err
		}
		if !recorded.ok() { // the receiver refused: there is nothing to confirm
			return effects.Answer{State: effects.StateDone}, nil
		}
	}
	ask := v.request(q.Key)
	for settled := !unfinished; ; settled = true {
		out, err := v.client.call(ctx, &ask)
		if err != nil {
			return effects.Answer{}, err
		}
		a := effects.Answer{State: effects.StateUnknown, Note: fmt.Sprintf("the receiver answered %d %s", out.Status, http.StatusText(out.Status))}
		switch gone := out.Status == http.StatusNotFound || out.Status == http.StatusGone; {
		case out.ok():
			a.State = effects.StateDone
			if unfinished {
				a.Result, err = json.Marshal(out)
			}
			return a, err
		case gone && settled:
			a.State = effects.StateNotDone
			return a, nil
		case !gone:
			return a, nil
		}
		if err := pause(ctx, v.settle); err != nil {
			return effects.Answer{}, err
		}
	}
}
