package quipu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// Tokens acts on the tokens of a space, with which programs and people use its HTTP API (O11).
// Runtime.Tokens returns one.
type Tokens struct{ rt *Runtime }

// Token is a token of a space, without its secret, which is stored nowhere.
type Token struct {
	Name       string // of who has it, for the journal
	Role       access.Role
	Made, Ends time.Time // Ends is zero for one that holds until it is revoked
}

// Tokens returns what an operator does with the tokens of the space.
func (rt *Runtime) Tokens() Tokens { return Tokens{rt} }

// Create makes a token and returns it: nobody can read it again. The name is that of who will
// have it; 1 to access.MaxName bytes, and no other token of the space has it. It holds for the
// given time, at most flow.MaxExpire, and for 0 until it is revoked. Errors: ErrInput, ErrRejected
// if the name has a token. It needs the owner's rights.
func (t Tokens) Create(ctx context.Context, name string, role access.Role, holds time.Duration) (string, error) {
	if err := access.CheckName(name); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInput, err)
	}
	if !role.Valid() {
		return "", fmt.Errorf("%w: role %.40q: the roles are %v", ErrInput, role, access.Roles())
	}
	if holds < 0 || holds > flow.MaxExpire {
		return "", fmt.Errorf("%w: a token holds for up to %v, or with 0 until it is revoked: %v", ErrInput, flow.MaxExpire, holds)
	}
	token := access.NewToken()
	hash, _ := access.Hash(token)
	return token, t.rt.store.AddToken(ctx, hash, name, role, holds)
}

// List returns the tokens, the oldest first, also those that have ended.
func (t Tokens) List(ctx context.Context) ([]Token, error) {
	stored, err := t.rt.store.Tokens(ctx)
	all := make([]Token, len(stored))
	for i, s := range stored {
		all[i] = Token{Name: s.Name, Role: s.Role, Made: moment(s.Made), Ends: moment(s.Ends)}
	}
	return all, err
}

// Revoke ends a token at once: ErrNotFound. It needs the owner's rights.
func (t Tokens) Revoke(ctx context.Context, name string) error {
	return t.rt.store.RevokeToken(ctx, name)
}

// Who says whose token it is, and whether it holds now. It is what access.Config.Tokens takes. A
// token that held before is looked up each time. Tokens that are not known are looked up one by one
// as long as there are few of them; while many are tried, a token that was just made is known after
// a quarter of a second.
func (t Tokens) Who(ctx context.Context, token string) (who access.Who, holds bool, err error) {
	hash, ok := access.Hash(token)
	if !ok {
		return who, false, nil
	}
	looks := &t.rt.looks
	if !looks.known(hash) && !looks.free() {
		if err := looks.readAll(ctx, t.rt.store); err != nil || !looks.known(hash) {
			return who, false, err
		}
	}
	found, err := t.rt.store.FindToken(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		looks.note(hash, false)
		return who, false, nil
	}
	if err == nil {
		looks.note(hash, true)
	}
	return access.Who{Name: found.Name, Role: found.Role}, err == nil, err
}

// Limits of the looks at tokens that are not known to hold, so that who tries tokens makes no query
// each time.
const (
	freeLooks   = 50                     // one by one, before all tokens are read at once
	freeAgain   = 50 * time.Millisecond  // one more of these
	tokensAgain = 250 * time.Millisecond // between two reads of all tokens
	tokensWait  = 5 * time.Second        // for one of these
)

// tokenLooks knows which tokens held when they were looked up last, and bounds the looks at others.
// The zero value is ready.
type tokenLooks struct {
	mu     sync.Mutex
	held   map[[sha256.Size]byte]bool
	spent  int       // of freeLooks
	gained time.Time // up to when spent was reduced

	reading sync.Mutex // held while all are read
	read    time.Time
	failed  error // of the last read
}

func (l *tokenLooks) known(hash [sha256.Size]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[hash]
}

// note notes what a look has found.
func (l *tokenLooks) note(hash [sha256.Size]byte, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !holds:
		delete(l.held, hash)
	case l.held == nil || len(l.held) >= 2*postgres.MaxTokens: // most of them were revoked
		l.held = map[[sha256.Size]byte]bool{hash: true}
	default:
		l.held[hash] = true
	}
}

// free takes a look at one token; false: too many were taken.
func (l *tokenLooks) free() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	gain := int(min(now.Sub(l.gained)/freeAgain, freeLooks))
	l.gained = l.gained.Add(time.Duration(gain) * freeAgain)
	if l.spent = max(0, l.spent-gain); l.spent == 0 {
		l.gained = now
	}
	if l.spent >= freeLooks {
		return false
	}
	l.spent++
	return true
}

// readAll reads all tokens, unless that was done in tokensAgain; whoever comes meanwhile waits for
// it. A failure holds as long.
func (l *tokenLooks) readAll(ctx context.Context, st *postgres.Store) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	if time.Since(l.read) < tokensAgain {
		return l.failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokensWait) // others take what it finds, too
	defer cancel()
	all, err := st.TokenHashes(ctx)
	l.read, l.failed = time.Now(), err
	if err != nil {
		return err
	}
	held := make(map[[sha256.Size]byte]bool, len(all))
	for _, hash := range all {
		held[hash] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	return nil
}
