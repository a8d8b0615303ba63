package e2e

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/world"
	"github.com/quipu-journal/quipu/workers"
)

func init() { moreHandlers = append(moreHandlers, txHandlers) }

// txHandlers write in a table of the user's, without any constraint that would hide a
// second time.
func txHandlers(reg *workers.Registry, receiver string) {
	workers.Handle(reg, "note", func(ctx context.Context, in order) (map[string]string, error) {
		reach := func(ctx context.Context, point string) error { // a place for a kill
			_, err := world.Call(ctx, receiver, point+" "+in.ID, point+" "+in.ID)
			return err
		}
		if err := reach(ctx, "before"); err != nil {
			return nil, err
		}
		_, err := quipu.DoTx(ctx, "note", func(ctx context.Context, tx quipu.EffectTx) (any, error) {
			if _, err := tx.Exec(ctx, "INSERT INTO notes VALUES ($1)", in.ID); err != nil {
				return nil, err
			}
			return nil, reach(ctx, "inside")
		})
		if err != nil {
			return nil, err
		}
		return map[string]string{"receipt": "done " + in.ID}, reach(ctx, "after")
	})
}

// connect looks at the database beside the runtime.
func (e *env) connect() *pgx.Conn {
	e.t.Helper()
	c, err := pgx.Connect(e.t.Context(), e.Postgres)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { _ = c.Close(context.Background()) }) // its server may have been restarted
	return c
}

// tables makes the user's table, and looks at it.
func (e *env) tables() *pgx.Conn {
	e.t.Helper()
	c := e.connect()
	_, err := c.Exec(e.t.Context(), `CREATE TABLE notes (id text)`)
	require.NoError(e.t, err)
	return c
}

func (e *env) count(c *pgx.Conn, from string, args ...any) (n int) {
	e.t.Helper()
	require.NoError(e.t, c.QueryRow(e.t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n))
	return n
}
