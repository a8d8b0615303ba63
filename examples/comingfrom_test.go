package examples_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/examples/comingfrom"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// outside answers for the bank, the mailer and the till of the ports.
type outside struct{ mails chan string }

func (outside) PayOut(_ context.Context, _ string, in comingfrom.Request) (string, error) {
	return "paid " + in.Order, nil
}

func (o outside) Send(_ context.Context, _, user string) error      { o.mails <- user; return nil }
func (outside) Charge(context.Context, string, int) (string, error) { return "charged", nil }

// The ports of docs/coming-from.md do what they are for.
func TestPorts(t *testing.T) {
	t.Parallel()
	ctx, o := devtest.Context(t), outside{mails: make(chan string, 2)}
	var dsn string
	s := open(t, "comingfrom", func(cfg *quipu.Config) { dsn = cfg.Postgres },
		comingfrom.Desk{Bank: o}.Register, comingfrom.Post{Mailer: o}.Register,
		comingfrom.Store{Till: o, Cooling: glance}.Register)

	require.NoError(t, comingfrom.Approve(ctx, s.Runtime, "7"))
	receipt, err := comingfrom.Pay(ctx, s.Runtime, comingfrom.Request{Order: "7", Cents: 100})
	require.NoError(t, err)
	require.Equal(t, "paid 7", receipt)

	db, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(context.Background())) }()
	for _, make := range []string{"create table users (name text primary key)", "create table stock as select 'tea' as item, 1 as pieces"} {
		_, err := db.Exec(ctx, make)
		require.NoError(t, err)
	}
	require.NoError(t, pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return comingfrom.SignUp(ctx, s.Runtime, tx, "ada") }))
	require.Equal(t, "null", s.Output("welcome-ada"))
	require.Equal(t, "ada", devtest.Await(t, "the mail", o.mails))

	receipt, err = comingfrom.Buy(ctx, s.Runtime, "order-1", comingfrom.Basket{Item: "tea", Cents: 100})
	require.NoError(t, err)
	require.Equal(t, "charged", receipt)
	_, err = comingfrom.Buy(ctx, s.Runtime, "order-2", comingfrom.Basket{Item: "tea", Cents: 100})
	require.ErrorContains(t, err, "sold out")
}

// What docs/coming-from.md shows of Quipu is code of the ports, word for word.
func TestPortsAreShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/coming-from.md")
	require.NoError(t, err)
	files, err := filepath.Glob("comingfrom/*.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		code.Write(text)
	}
	parts := strings.Split(string(page), "In Quipu:\n\n```go\n")[1:]
	require.Len(t, parts, 3)
	for _, part := range parts {
		block, _, closed := strings.Cut(part, "```")
		require.True(t, closed)
		require.Contains(t, code.String(), block)
	}
}
