package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/workers"
)

// Limits of the built-in http handler.
const (
	// MaxHTTPBody bounds the body of a response, in bytes.
	MaxHTTPBody = 512 << 10
	// MaxHTTPHeaders bounds the headers of a response, in bytes.
	MaxHTTPHeaders = 64 << 10
	// DefaultHTTPTimeout bounds a call whose attempt has no timeout.
	DefaultHTTPTimeout = 30 * time.Second
	// MaxRedirects bounds the redirects that a GET or HEAD follows; other methods do not
	// follow any.
	MaxRedirects = 10
	// MaxRetryAfter bounds the delay that a receiver can ask for.
	MaxRetryAfter = time.Hour
)

// keyHeader carries the effect's key. A header in this spelling allows net/http to send
// the request again by itself. A guarded request must not be repeated, so its header goes
// out in lower case.
const keyHeader = "Idempotency-Key"

// HTTPRequest is the input of the built-in http handler. ${secret:NAME} in URL and in the
// values of Headers stands for a secret of the worker (S14).
type HTTPRequest struct {
	Method  string            `json:"method"` // default GET
	URL     string            `json:"url"`    // http or https
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`   // a string is sent as it is, everything else as JSON
	Verify  *HTTPVerify       `json:"verify"` // how to find out whether the call was done; not for GET and HEAD
	// RecordHeaders names headers of the response that are recorded although they hold
	// credentials, such as Set-Cookie.
	RecordHeaders []string `json:"record_headers"`
}

// HTTPResponse is the output of the built-in http handler.
type HTTPResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // canonical names, several values joined by ", "
	Body    json.RawMessage   `json:"body"`    // JSON if the content type says so and it parses, otherwise a string
}

// credentials are the headers of a response that are not recorded unless RecordHeaders
// names them: what is in them lets others act for the worker.
var credentials = map[string]bool{
	"Set-Cookie": true, "Set-Cookie2": true, "Cookie": true,
	"Authorization": true, "Authentication-Info": true, "Www-Authenticate": true,
	"Proxy-Authorization": true, "Proxy-Authentication-Info": true, "Proxy-Authenticate": true,
}

type httpClient struct {
	client  http.Client // without CheckRedirect, which is of the call
	secrets func(name string) (workers.Secret, error)
}

// redirect follows a redirect only where repeating the request does no harm. Secrets do
// not go to another host, and no URL goes on as a Referer.
func (s *sent) redirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return http.ErrUseLastResponse
	case len(via) > MaxRedirects:
		return fmt.Errorf("over %d redirects", MaxRedirects)
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return fmt.Errorf("redirect to scheme %.20q, allowed are http and https", next.URL.Scheme)
	}
	next.Header.Del("Referer")
	elsewhere := func(q *http.Request) bool {
		return q.URL.Host != first.URL.Host || first.URL.Scheme == "https" && q.URL.Scheme != "https" || !s.belongsTo(q.URL)
	}
	if !elsewhere(next) && !slices.ContainsFunc(via, elsewhere) {
		return nil
	}
	if text := next.URL.String(); s.hide(text) != text {
		return errors.New("redirect to another host with a secret in its url")
	}
	for _, name := range s.headers {
		next.Header.Del(name)
	}
	return nil
}

// handle makes one call. GET and HEAD are Pure and may be sent again; every other
// method is an effect, whose key goes out as Idempotency-Key (E1).
func (c *httpClient) handle(ctx context.Context, in HTTPRequest) (HTTPResponse, error) {
	in.Method = strings.ToUpper(in.Method)
	if in.Method == "" {
		in.Method = http.MethodGet
	}
	if err := in.check(); err != nil {
		return HTTPResponse{}, badInput("http", err)
	}
	out, err := c.do(ctx, &in)
	if err != nil {
		return HTTPResponse{}, err
	}
	return out, out.refusal()
}

func (c *httpClient) do(ctx context.Context, in *HTTPRequest) (HTTPResponse, error) {
	if in.Method == http.MethodGet || in.Method == http.MethodHead {
		if in.Verify != nil {
			return HTTPResponse{}, badInput("http", fmt.Errorf("verify, and method %s: there is nothing to be verified", in.Method))
		}
		return c.call(ctx, in)
	}
	options, err := c.options(in)
	if err != nil {
		return HTTPResponse{}, badInput("http", err)
	}
	return effects.Do(ctx, "http", func(ctx context.Context) (HTTPResponse, error) {
		out, err := c.call(ctx, in)
		if _, nothing := errors.AsType[*unsentError](err); nothing && in.Verify != nil {
			err = effects.NotDone(err)
		}
		return out, err
	}, options...)
}

func (in *HTTPRequest) check() error {
	if err := in.checkReferences(); err != nil {
		return err
	}
	u, err := url.Parse(reference.ReplaceAllLiteralString(in.URL, "x"))
	if err != nil {
		return errors.New("url cannot be parsed") // the error would repeat it, with its secrets
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return fmt.Errorf("url has scheme %.20q and host %.80q, wanted is http:// or https:// with a host", u.Scheme, u.Host)
	}
	return in.checkHeaders()
}

// call sends the request once. Statuses that a further attempt may change (408, 429, 5xx)
// are errors; the effect records all others as results (E5).
func (c *httpClient) call(ctx context.Context, in *HTTPRequest) (HTTPResponse, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultHTTPTimeout)
		defer cancel()
	}
	s, err := c.resolve(in)
	if err != nil {
		return HTTPResponse{}, &unsentError{err}
	}
	q, err := in.build(ctx, s)
	if err != nil {
		return HTTPResponse{}, workers.Fatal(badInput("http", err))
	}
	client := c.client
	client.CheckRedirect = s.redirect
	p, err := client.Do(q)
	if err != nil {
		return HTTPResponse{}, s.unsaid(q, err)
	}
	defer p.Body.Close()
	body, err := io.ReadAll(io.LimitReader(p.Body, MaxHTTPBody+1))
	if err != nil {
		return HTTPResponse{}, s.unsaid(q, err)
	}
	if again(p.StatusCode) {
		err := &workers.Error{Code: errorStatus(p.StatusCode), Class: wire.ClassHTTP, Message: said(q, p.StatusCode)}
		if after, ok := retryAfter(p.Header.Get("Retry-After")); ok {
			return HTTPResponse{}, workers.RetryAfter(after, err)
		}
		return HTTPResponse{}, err
	}
	if len(body) > MaxHTTPBody {
		return HTTPResponse{}, workers.Fatal(&workers.Error{
			Code: http.StatusBadGateway, Class: wire.ClassTooLarge,
			Message: fmt.Sprintf("%s: the body of the response is over %d bytes", said(q, p.StatusCode), MaxHTTPBody),
		})
	}
	return HTTPResponse{
		Status: p.StatusCode, Headers: flat(p.Header, in.RecordHeaders, s),
		Body: s.hideIn(readable(p.Header.Get("Content-Type"), body)),
	}, nil
}

func (in *HTTPRequest) build(ctx context.Context, s *sent) (*http.Request, error) {
	body, kind := []byte(in.Body), "application/json"
	var text string
	if len(body) > 0 && body[0] == '"' && json.Unmarshal(body, &text) == nil {
		body, kind = []byte(text), "text/plain; charset=utf-8"
	}
	if string(body) == "null" {
		body = nil
	}
	q, err := http.NewRequestWithContext(ctx, in.Method, s.inURL(in.URL), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("method or url cannot be used")
	}
	if len(body) > 0 {
		q.Header.Set("Content-Type", kind)
	}
	for name, value := range in.Headers {
		q.Header.Set(name, s.inHeader(name, value))
	}
	if host := q.Header.Get("Host"); host != "" {
		q.Host = host
	}
	s.basic(q.URL.User)
	if key := effects.Key(ctx); key != "" {
		q.Header.Del(keyHeader)
		name := keyHeader
		if in.Verify != nil {
			name = strings.ToLower(keyHeader) // see keyHeader
		}
		q.Header[name] = []string{key}
	}
	return q, nil
}

// refusal is the error for a status that is no success: a business error with the status
// as its code and, unless it is too large, the response as its data.
func (out *HTTPResponse) refusal() error {
	if out.ok() {
		return nil
	}
	e := &workers.Error{
		Code: errorStatus(out.Status), Class: wire.ClassHTTP,
		Message: fmt.Sprintf("the receiver answered %d %s", out.Status, http.StatusText(out.Status)),
	}
	workers.Data(out)(e)
	return workers.Fatal(e)
}

// errorStatus is the code of the error that a status becomes: E11 knows no 3xx, and nobody a 999.
func errorStatus(status int) int {
	if !wire.IsErrorCode(status) {
		return http.StatusBadGateway
	}
	return status
}

func (out *HTTPResponse) ok() bool { return out.Status >= 200 && out.Status < 300 }

func again(status int) bool { return status >= wire.LowestErrorCode && !wire.EndsActivity(status) }

// said names the call without path, query and user, which may hold secrets.
func said(q *http.Request, status int) string {
	return fmt.Sprintf("%s %s://%s answered %d %s", q.Method, q.URL.Scheme, q.URL.Host, status, http.StatusText(status))
}

// unsaid is the error of a call without an answer. Its text may repeat what the receiver
// sent, such as a Location, so secrets are hidden in it.
func (s *sent) unsaid(q *http.Request, err error) error {
	to := fmt.Sprintf("%s %s://%s", q.Method, q.URL.Scheme, q.URL.Host)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return workers.Fatal(&workers.Error{
			Code: http.StatusForbidden, Class: wire.ClassRefused, Message: s.hide(to + ": " + refused.Error()),
		})
	}
	op, ok := errors.AsType[*net.OpError](err)
	unsent := ok && op.Op == "dial"
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	err = fmt.Errorf("%s: %w", to, err)
	if text := s.hide(err.Error()); text != err.Error() {
		err = errors.New(text) // without the chain, which would have it still
	}
	if unsent {
		return &unsentError{err}
	}
	return err
}

// unsentError is an error that came before there was a connection: the call was certainly
// not done (E5).
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// retryAfter reads the header: seconds, or a date.
func retryAfter(value string) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter), true
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(time.Until(at), 0), MaxRetryAfter), true
	}
	return 0, false
}

// flat are the headers that are recorded.
func flat(h http.Header, record []string, s *sent) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		asked := slices.ContainsFunc(record, func(r string) bool { return strings.EqualFold(r, name) })
		if asked || !credentials[name] {
			out[s.hide(name)] = s.hide(strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD"))
		}
	}
	return out
}

// readable is the body as JSON where the content type says so and it parses. Otherwise it
// is a string, in which U+FFFD replaces bytes that are no text.
func readable(contentType string, body []byte) json.RawMessage {
	kind, _, _ := mime.ParseMediaType(contentType)
	if kind == "application/json" || strings.HasSuffix(kind, "+json") {
		if raw, err := canonical.Payload(body); err == nil {
			return raw
		}
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")
	return canonical.AppendString(nil, text)
}
