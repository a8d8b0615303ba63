package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Role says what somebody may do.
type Role string

// The roles. Each may also do what the ones before it may.
const (
	Viewer   Role = "viewer"   // sees jobs, flows and dead letters, without payloads
	Client   Role = "client"   // starts, signals and interrupts jobs, and sees payloads
	Operator Role = "operator" // decides on dead letters, resumes and forks jobs, deploys flows, and everything else
)

// Roles returns the roles, the one with the least rights first.
func Roles() []Role { return []Role{Viewer, Client, Operator} }

// Valid says whether there is such a role.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Covers says whether somebody with the role r may do what other needs.
func (r Role) Covers(other Role) bool {
	return other.Valid() && slices.Index(Roles(), r) >= slices.Index(Roles(), other)
}

// Who is somebody who asks. The zero value is nobody, who may do nothing.
type Who struct {
	Name string // for the journal and the log
	Role Role
	// Payloads says that inputs, outputs and data of errors may be shown to them.
	Payloads bool
}

type key struct{}

// Of returns who asks; nobody, in a context that no Guard has made.
func Of(ctx context.Context) Who {
	who, _ := ctx.Value(key{}).(Who)
	return who
}

// MaxName bounds the name of somebody, bytes.
const MaxName = 128

// CheckName refuses a name that is empty, over MaxName, or has what cannot be printed.
func CheckName(name string) error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unprintable) {
		return fmt.Errorf("a name is 1 to %d bytes of printable UTF-8, this one is %.80q", MaxName, name)
	}
	return nil
}

// tokenPrefix tells people, and programs that look for secrets, what a token is for.
const tokenPrefix = "quipu_"

// NewToken returns a new token. It has 130 random bits.
func NewToken() string { return tokenPrefix + rand.Text() }

// Hash returns what is stored of a token, from which nobody can make it; false if the text is no
// token.
func Hash(token string) (hash [sha256.Size]byte, ok bool) {
	if !strings.HasPrefix(token, tokenPrefix) || len(token) != len(NewToken()) {
		return hash, false
	}
	return sha256.Sum256([]byte(token)), true
}
