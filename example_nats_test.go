package quipu_test

import (
	"context"
	"log"
	"time"

	"github.com/quipu-journal/quipu"
)

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
