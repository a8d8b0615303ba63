package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// MaxTokens bounds the tokens of a space.
const MaxTokens = 1000

// Token is what is stored of a token of the HTTP API, without its hash (O11).
type Token struct {
	Name       string
	Role       access.Role
	Made, Ends collation.Micros // Ends: collation.Never for one that is only revoked
}

func readToken(v row) (Token, error) {
	t := Token{Name: v.text(0), Role: access.Role(v.text(1)), Made: collation.Micros(v.int(2)), Ends: collation.Never}
	if !v.null(3) {
		t.Ends = collation.Micros(v.int(3))
	}
	return t, nil
}

// FindToken returns the token with the hash, if it holds now: store.ErrNotFound.
func (s *Store) FindToken(ctx context.Context, hash [32]byte) (Token, error) {
	t, found, err := readOne(ctx, s, "token_find", readToken, hash[:])
	if err == nil && !found {
		err = fmt.Errorf("%w: no such token, or it has ended", store.ErrNotFound)
	}
	return t, err
}

// TokenHashes returns the hashes of all tokens that hold now, in any order.
func (s *Store) TokenHashes(ctx context.Context) ([][32]byte, error) {
	return readAll(ctx, s, "token_hashes", func(v row) (hash [32]byte, err error) {
		copy(hash[:], v[0])
		return hash, nil
	}, pInt(MaxTokens))
}

// Tokens lists the tokens, the oldest first, also those that have ended.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	return readAll(ctx, s, "token_list", readToken, pInt(MaxTokens))
}

// AddToken stores a token that holds for a time, 0 for until it is revoked. The error is
// store.ErrRejected if the name has a token, or the space has MaxTokens. It needs the owner's
// rights.
func (s *Store) AddToken(ctx context.Context, hash [32]byte, name string, role access.Role, holds time.Duration) error {
	var ends []byte
	if holds > 0 {
		ends = pInt(holds.Microseconds())
	}
	until := "until revoked"
	if holds > 0 {
		until = holds.String()
	}
	return s.act(ctx, "make a token", func(c *conn) ([]journal.SpaceEntry, error) {
		did, err := c.did(ctx, "token_add", hash[:], pText(name), pText(string(role)), ends, pInt(MaxTokens))
		if err == nil && !did {
			err = fmt.Errorf("%w: a token %q is there already, or the space has %d, the limit: revoke one", store.ErrRejected, name, MaxTokens)
		}
		return one(did, journal.SpaceTokenMade, map[string]string{"name": name, "role": string(role), "holds": until}), err
	})
}

// RevokeToken ends a token at once: store.ErrNotFound. It needs the owner's rights.
func (s *Store) RevokeToken(ctx context.Context, name string) error {
	return s.act(ctx, "revoke a token", func(c *conn) ([]journal.SpaceEntry, error) {
		did, err := c.did(ctx, "token_revoke", pText(name))
		if err == nil && !did {
			err = fmt.Errorf("%w: no token %q", store.ErrNotFound, name)
		}
		return one(did, journal.SpaceTokenRevoked, map[string]string{"name": name}), err
	})
}
