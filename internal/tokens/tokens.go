package tokens

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal/postgres"
)

// Limits of the looks at tokens that are not known to hold, so that who tries tokens makes no query
// each time.
const (
	freeLooks   = 50                     // one by one, before all tokens are read at once
	freeAgain   = 50 * time.Millisecond  // one more of these
	tokensAgain = 250 * time.Millisecond // between two reads of all tokens
	tokensWait  = 3 * time.Second        // for one of these
)

// Looks says who has a token. It knows which tokens held when they were looked up last, and bounds the looks at others.
type Looks struct {
	st *postgres.Store

	mu     sync.Mutex
	held   map[[sha256.Size]byte]bool
	spent  int       // of freeLooks
	gained time.Time // up to when spent was reduced

	reading sync.Mutex // held while all are read
	read    time.Time
	failed  error // of the last read
}

// New returns the looks at the tokens of a space.
func New(st *postgres.Store) *Looks { return &Looks{st: st} }

// Who says whose token it is, and whether it holds now. A token that held before is looked up each
// time. Tokens that are not known are looked up one by one as long as there are few of them; while
// many are tried, a token that was just made is known after a quarter of a second.
func (l *Looks) Who(ctx context.Context, token string) (who access.Who, holds bool, err error) {
	hash, ok := access.Hash(token)
	if !ok {
		return who, false, nil
	}
	if !l.known(hash) && !l.free() {
		if err := l.readAll(ctx); err != nil || !l.known(hash) {
			return who, false, err
		}
	}
	found, err := l.st.FindToken(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		l.note(hash, false)
		return who, false, nil
	}
	if err == nil {
		l.note(hash, true)
	}
	return access.Who{Name: found.Name, Role: found.Role}, err == nil, err
}

func (l *Looks) known(hash [sha256.Size]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[hash]
}

// note notes what a look has found.
func (l *Looks) note(hash [sha256.Size]byte, holds bool) {
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
func (l *Looks) free() bool {
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
func (l *Looks) readAll(ctx context.Context) error {
	l.reading.Lock()
	defer l.reading.Unlock()
	if time.Since(l.read) < tokensAgain {
		return l.failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokensWait) // others take what it finds, too
	defer cancel()
	all, err := l.st.TokenHashes(ctx)
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
