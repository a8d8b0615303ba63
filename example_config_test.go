package quipu_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/workers"
)

// A process whose servers are named by the environment, or by a running `worker dev`.
func ExampleConfigFromEnv() {
	cfg, err := quipu.ConfigFromEnv()
	if err == nil && cfg.Postgres == "" {
		cfg, err = quipu.ConfigFromDev(".quipu")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg.Workers = workers.New()
	cfg.Roles = []quipu.Role{quipu.RoleWorkers}
}

// A process of a space on a cluster of NATS servers that ask for TLS and a login. The database has
// two hosts: the one that takes writes is found, and found again after a promotion.
func ExampleNATSOptions() {
	rt, err := quipu.Open(context.Background(), quipu.Config{
		Postgres: "postgres://quipu@db-1,db-2/quipu?sslmode=verify-full&sslrootcert=/etc/quipu/ca.pem",
		NATS:     "tls://nats-1:4222,tls://nats-2:4222,tls://nats-3:4222",
		NATSOptions: quipu.NATSOptions{
			CA: "/etc/quipu/ca.pem", Credentials: "/etc/quipu/engine.creds",
			Replicas: 3, MaxBytes: 8 << 30, MaxAge: 7 * 24 * time.Hour, PlacementTags: []string{"ssd"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
}

// Errors of Open: a bad Config, a server that is away or would lose what
// it acknowledged, a schema of another build.
func ExampleOpen() {
	ctx := context.Background()
	servers := &exampleT{}
	defer servers.end()
	dsn := devtest.Postgres(servers)
	for _, cfg := range []quipu.Config{
		{Postgres: dsn, Space: quipu.DefaultSpace}, // as without a Space
		{Postgres: dsn, Space: "Shop"},
		{Postgres: dsn, Space: "other", NoMigrate: true}, // nobody has made its schema
		{Postgres: dsn, NATS: "nats://127.0.0.1:1", NATSWait: 1},
		{Postgres: dsn + "&synchronous_commit=off"},
		{Postgres: dsn + "&synchronous_commit=off", Accept: []string{"synchronous-commit-off"}},
	} {
		rt, err := quipu.Open(ctx, cfg)
		switch {
		case errors.Is(err, quipu.ErrConfig):
			fmt.Println("mend the configuration:", err)
		case errors.Is(err, quipu.ErrPreflight):
			fmt.Println("mend the servers:", err)
		case errors.Is(err, quipu.ErrSchema):
			fmt.Println("migrate first:", err)
		case errors.Is(err, quipu.ErrUnavailable):
			fmt.Println("try again later")
		default:
			must(err)
			fmt.Println("connected")
			rt.Close()
		}
	}
	// Output:
	// connected
	// mend the configuration: quipu configuration: space "Shop": a lower-case letter, then up to 31 of a-z, 0-9 and -
	// migrate first: the database has no space other: it has default; `quipu migrate --space other` makes it
	// try again later
	// mend the servers: postgres: preflight refused: synchronous-commit-off: synchronous_commit is off: set it to on or stricter, or a crash loses what was acknowledged (or accept it: --accept synchronous-commit-off)
	// connected
}

// Roles of a space in processes of their own: those with handlers scale apart from the engine.
func ExampleRole() {
	ctx, stop := context.WithCancel(context.Background())
	servers := &exampleT{}
	defer servers.end()
	reg := workers.New()
	workers.Handle(reg, "post.price", postage)
	cfg := exampleConfig(servers)
	done := make(chan error, 2)
	var last *quipu.Runtime
	for _, roles := range [][]quipu.Role{{quipu.RoleEngine, quipu.RoleSchedule}, {quipu.RoleWorkers}} {
		if cfg.Roles = roles; slices.Contains(roles, quipu.RoleWorkers) {
			cfg.Workers = reg
		}
		rt, err := quipu.Open(ctx, cfg)
		must(err)
		defer rt.Close()
		go func() { done <- rt.Run(ctx) }()
		last = rt
	}
	cents, err := priceOf(ctx, last, "parcel-1", Parcel{Grams: 500})
	fmt.Println(cents, err)
	stop()
	fmt.Println(<-done, <-done)
	// Output:
	// 250 <nil>
	// <nil> <nil>
}

// The owner sets up a space once: whether it keeps keys or digests of keys, how long closed jobs are
// kept, and database roles with the least rights that a process needs.
func ExampleRuntime_CreateRoles() {
	ctx := context.Background()
	rt, dsn, end := exampleOf(quipu.Config{Space: "books"})
	defer end()
	must(rt.KeepPrivateKeys(ctx))
	fmt.Println(rt.PrivateKeys(ctx))
	must(rt.SetExpireDefault(ctx, 90*24*time.Hour))
	fmt.Println(rt.ExpireDefault(ctx))

	must(rt.CreateRoles(ctx))
	conn, err := pgx.Connect(ctx, dsn)
	must(err)
	defer func() { must(conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, "select rolname from pg_roles where rolname like '%books%' order by 1")
	must(err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	fmt.Println(names, err)
	// Output:
	// true <nil>
	// 2160h0m0s <nil>
	// [quipu_books_client quipu_books_engine quipu_books_operator quipu_books_owner quipu_books_retention quipu_books_verifier quipu_books_worker] <nil>
}
