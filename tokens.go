package quipu

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/flow"
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
	return t.rt.tokens.Who(ctx, token)
}
