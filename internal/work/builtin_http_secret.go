package work

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/workers"
)

// Limits of secrets.
const (
	// MinSecret and MaxSecret bound a secret, in bytes. A shorter one can be guessed, and
	// cannot be told from other text when a receiver sends it back.
	MinSecret = 8
	MaxSecret = 8 << 10
	// MaxSecretsOfCall bounds the different secrets of one call.
	MaxSecretsOfCall = 16
)

const referenceStart = "${secret:"

// reference stands for a secret. Its first group is the name, which is safe as the name of
// a file and of an environment variable.
var reference = regexp.MustCompile(`\$\{secret:([A-Za-z0-9_-]{1,64})\}`)

// checkReferences finds what is wrong with the references to secrets.
func (in *HTTPRequest) checkReferences() error {
	for _, text := range in.withReferences() {
		if strings.Count(text, referenceStart) != len(reference.FindAllString(text, -1)) {
			return errors.New("a secret is written ${secret:NAME}, with a NAME of 1 to 64 letters, digits, _ and -")
		}
	}
	// The host is told from the rest by what does not change with the secret.
	host := func(secret string) string {
		u, err := url.Parse(reference.ReplaceAllLiteralString(in.URL, secret))
		if err != nil {
			return ""
		}
		return u.Scheme + "://" + u.Host
	}
	if host("x") != host("y") {
		return errors.New("a secret in the host of url: it can be in the user, the path and the query")
	}
	return nil
}

// withReferences are the texts in which a reference counts.
func (in *HTTPRequest) withReferences() []string {
	texts := []string{in.URL}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		texts = append(texts, in.Headers[name])
	}
	return texts
}

// sent are the secrets of one call. It is the only thing that knows them, and ends with the
// call.
type sent struct {
	values  map[string]string // by name
	headers []string          // names of the request's headers that hold one
	forms   []string          // pairs: a form of a secret, and what is recorded for it
	hider   *strings.Replacer
	places  [][]string // the hosts of each secret
}

// resolve looks up the secrets of a call. A secret that is missing fails the attempt,
// because an operator can add it; one that does not belong to the host ends the activity.
func (c *httpClient) resolve(in *HTTPRequest) (*sent, error) {
	s := &sent{values: map[string]string{}}
	for _, text := range in.withReferences() {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			s.values[m[1]] = ""
		}
	}
	if len(s.values) > MaxSecretsOfCall {
		return nil, badInput("http", fmt.Errorf("%d secrets, the limit is %d", len(s.values), MaxSecretsOfCall))
	}
	if len(s.values) == 0 {
		return s, nil
	}
	u, err := url.Parse(reference.ReplaceAllLiteralString(in.URL, "x"))
	if err != nil {
		return nil, badInput("http", errors.New("url cannot be parsed"))
	}
	for name := range s.values {
		found, err := c.secret(name, u)
		if err != nil {
			return nil, err
		}
		s.values[name] = found.Value
		s.places = append(s.places, found.Hosts)
		s.forget(found.Value, "${secret:"+name+"}")
	}
	return s, nil
}

// secret looks one up for a call to u.
func (c *httpClient) secret(name string, u *url.URL) (workers.Secret, error) {
	found, err := workers.Secret{}, errors.New("this worker does not have it")
	if c.secrets != nil {
		found, err = c.secrets(name)
	}
	if err == nil {
		err = checkSecret(found)
	}
	if err != nil {
		return workers.Secret{}, &workers.Error{
			Code: http.StatusInternalServerError, Class: wire.ClassSecret, Message: fmt.Sprintf("secret %s: %v", name, err),
		}
	}
	if !belongs(found.Hosts, u) {
		return workers.Secret{}, workers.Fatal(&workers.Error{
			Code: http.StatusForbidden, Class: wire.ClassSecret,
			Message: fmt.Sprintf("secret %s is not sent to %.253s by %.20s: its hosts do not have that name, or only with another port or scheme", name, u.Host, u.Scheme),
		})
	}
	return found, nil
}

// belongsTo says that all secrets of the call may be sent to u.
func (s *sent) belongsTo(u *url.URL) bool {
	return !slices.ContainsFunc(s.places, func(hosts []string) bool { return !belongs(hosts, u) })
}

// belongs says that one of a secret's hosts is where u leads.
func belongs(hosts []string, u *url.URL) bool {
	return slices.ContainsFunc(hosts, func(entry string) bool {
		scheme, place, has := strings.Cut(strings.TrimSpace(entry), "://")
		if !has {
			scheme, place = "", scheme
		}
		host, port := place, ""
		if h, p, err := net.SplitHostPort(place); err == nil {
			host, port = h, p
		} else if has {
			port = ports[strings.ToLower(scheme)]
		}
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
		return plainHost(host) == plainHost(u.Hostname()) && (!has || strings.EqualFold(scheme, u.Scheme)) &&
			(port == "" || port == cmp.Or(u.Port(), ports[u.Scheme]))
	})
}

// ports are those of a URL without one.
var ports = map[string]string{"http": "80", "https": "443"}

func checkSecret(s workers.Secret) error {
	switch {
	case len(s.Value) < MinSecret:
		return fmt.Errorf("it is empty or shorter than %d bytes", MinSecret)
	case len(s.Value) > MaxSecret:
		return fmt.Errorf("it is longer than %d bytes", MaxSecret)
	case !utf8.ValidString(s.Value) || strings.ContainsFunc(s.Value, unicode.IsControl):
		return errors.New("it is not text without control characters")
	}
	return nil
}

// forget makes hide replace the value by label, as it is and as it is sent or written.
func (s *sent) forget(value, label string) {
	quoted := canonical.AppendString(nil, value)
	for _, form := range []string{
		value, escaped(value, false), escaped(value, true), url.QueryEscape(value), url.PathEscape(value),
		string(quoted[1 : len(quoted)-1]),
	} {
		s.forms = append(s.forms, form, label)
	}
	pairs := slices.Collect(slices.Chunk(s.forms, 2))
	// the longer one where one begins another
	slices.SortStableFunc(pairs, func(a, b []string) int { return len(b[0]) - len(a[0]) })
	s.hider = strings.NewReplacer(slices.Concat(pairs...)...)
}

// basic forgets what net/http makes of a user in the URL.
func (s *sent) basic(user *url.Userinfo) {
	if user == nil || s.hider == nil {
		return
	}
	password, _ := user.Password()
	s.forget(base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)), "${secret:}")
}

// hide is the text as it may be recorded.
func (s *sent) hide(text string) string {
	if s.hider == nil {
		return text
	}
	return s.hider.Replace(text)
}

// hideIn is hide for canonical JSON. Where a secret stood as a number, what is left is no
// JSON, and becomes a string.
func (s *sent) hideIn(body json.RawMessage) json.RawMessage {
	text := s.hide(string(body))
	if text == string(body) {
		return body
	}
	if !json.Valid([]byte(text)) {
		return canonical.AppendString(nil, text)
	}
	return json.RawMessage(text)
}

// inHeader is the value of a header, with its secrets.
func (s *sent) inHeader(name, value string) string {
	if !reference.MatchString(value) {
		return value
	}
	s.headers = append(s.headers, name)
	return s.fill(value, func(secret string) string { return secret })
}

// inURL is the URL with its secrets, percent-encoded, so that none of them changes what
// the URL's parts are. Behind the host a slash stays, for secrets that are paths.
func (s *sent) inURL(raw string) string {
	path := len(raw)
	if _, rest, ok := strings.Cut(raw, "://"); ok {
		if at := strings.IndexAny(rest, "/?#"); at >= 0 {
			path = len(raw) - len(rest) + at
		}
	}
	return s.fill(raw[:path], func(secret string) string { return escaped(secret, false) }) +
		s.fill(raw[path:], func(secret string) string { return escaped(secret, true) })
}

func (s *sent) fill(text string, as func(secret string) string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		return as(s.values[reference.FindStringSubmatch(ref)[1]])
	})
}

// escaped percent-encodes everything but unreserved characters and, if slash, slashes.
func escaped(text string, slash bool) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-._~", c) >= 0 || slash && c == '/' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
