package postgres

import (
	"context"
	"fmt"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// errKeys says why a space cannot have private keys.
var errKeys = fmt.Errorf("%w: the space has jobs or signals whose keys stand in clear: a space keeps digests from its beginning, so make a new one", store.ErrRejected)

// SetPrivateKeys lets the space keep digests, for good (S15). From then on the tables refuse a job
// with any other key. A space with jobs or messages is refused: ErrRejected. It needs the owner's
// rights.
func (s *Store) SetPrivateKeys(ctx context.Context) error {
	if private, err := s.PrivateKeys(ctx); private || err != nil {
		return err
	}
	return s.act(ctx, "private keys", func(c *conn) ([]journal.SpaceEntry, error) {
		set := false
		err := c.run(
			ctx, step{name: "private_jobs"},
			step{"private_set", nil, func(row) error { set = true; return nil }},
		)
		if pg := serverError(err); pg != nil && pg.Code == "23514" || err == nil && !set {
			err = errKeys
		}
		return one(set, journal.SpacePrivateKeys, map[string]string{}), err
	})
}
