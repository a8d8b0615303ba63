package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// UnmarshalJSON implements json.Unmarshaler. It refuses members that the input does not have.
func (in *HTTPRequest) UnmarshalJSON(input []byte) error {
	if err := checkMembers(input); err != nil {
		return err
	}
	type plain HTTPRequest
	return json.Unmarshal(input, (*plain)(in))
}

// checkMembers refuses members that the input does not have: of a misspelt verify, a guarded call
// would become one that is sent twice.
func checkMembers(input json.RawMessage) error {
	var members, verify map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return nil // the type of the input says what is wrong
	}
	if err := known(members, reflect.TypeFor[HTTPRequest]()); err != nil {
		return err
	}
	if json.Unmarshal(members["verify"], &verify) != nil {
		return nil
	}
	if err := known(verify, reflect.TypeFor[HTTPVerify]()); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// known refuses members that are no fields of a type.
func known(members map[string]json.RawMessage, of reflect.Type) error {
	var names []string
	for i := range of.NumField() {
		names = append(names, of.Field(i).Tag.Get("json"))
	}
	var unknown []string
	for name := range members {
		if !slices.Contains(names, name) {
			unknown = append(unknown, fmt.Sprintf("%.40q", name))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("no member is called %.400s: it takes %s", strings.Join(unknown, ", "), strings.Join(names, ", "))
}

// identity are headers by which a receiver, or a proxy before it, finds out for whom a request is,
// or where it ends. Whoever can choose one sends a secret of the host that was dialled to another.
var identity = map[string]bool{
	"Host": true, "Forwarded": true, "Via": true, "X-Host": true, "X-Original-Url": true, "X-Rewrite-Url": true,
	"X-Http-Host-Override": true, "X-Original-Host": true, "X-Real-Ip": true,
	"Connection": true, "Keep-Alive": true, "Transfer-Encoding": true, "Content-Length": true, "Te": true, "Trailer": true,
	"Upgrade": true, "Expect": true,
}

// identityPrefixes begin more of them.
var identityPrefixes = []string{"X-Forwarded-", "Proxy-"}

// checkHeaders refuses headers that cannot be sent, and such as lead a secret elsewhere.
func (in *HTTPRequest) checkHeaders() error {
	secret := slices.ContainsFunc(in.withReferences(), func(text string) bool {
		return strings.Contains(text, referenceStart)
	})
	seen := make(map[string]bool, len(in.Headers))
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) { // of several faults, always the same one is said
		plain, value := http.CanonicalHeaderKey(name), in.Headers[name]
		switch {
		case name == "" || strings.ContainsFunc(name, func(c rune) bool { return !isToken(c) }):
			return fmt.Errorf("a header cannot be called %.80q: letters, digits and !#$%%&'*+-.^_`|~ are allowed", name)
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			return fmt.Errorf("the value of header %.80s has a control character, such as a line break", name)
		case seen[plain]:
			return fmt.Errorf("header %.80s is given twice, in two spellings", plain)
		case secret && (identity[plain] ||
			slices.ContainsFunc(identityPrefixes, func(p string) bool { return strings.HasPrefix(plain, p) })):
			return fmt.Errorf("header %.80s in a call with a secret: it can lead the call to another host than the secret's", plain)
		}
		seen[plain] = true
	}
	if strings.ContainsFunc(in.Method, func(c rune) bool { return !isToken(c) }) {
		return errors.New("method is no word that can be sent")
	}
	return nil
}

// isToken says that a character may be in the name of a header (RFC 9110, 5.6.2).
func isToken(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
