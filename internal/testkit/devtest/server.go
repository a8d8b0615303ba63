package devtest

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quipu-journal/quipu/internal/dev"
)

// small is dev.StartPostgres for the server of a test. It is small, without JIT, parallel queries
// and autovacuum, unless opts.Settings say otherwise; the settings that the promise needs stay.
// Its password is hashed in one round. The password is random and long, so the usual 4096 rounds
// protect nothing, and they are most of what a connection costs with the race detector.
func small(ctx context.Context, dir string, opts dev.PostgresOptions) (*dev.Postgres, error) {
	settings := map[string]string{"shared_buffers": "64MB", "jit": "off", "max_parallel_workers_per_gather": "0", "autovacuum": "off"}
	maps.Copy(settings, opts.Settings)
	opts.Settings = settings
	return fromSeed(ctx, dir, opts)
}

// Dir is a directory that every user can enter, such as the one that a server runs as.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "quipu-test-")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	return dir
}

// Cluster is a Postgres of the test's own, which may be restarted and copied.
func Cluster(t testing.TB, opts dev.PostgresOptions) *dev.Postgres {
	t.Helper()
	return ClusterIn(t, Dir(t), opts)
}

// ClusterIn is a Cluster below a directory that every user can enter.
func ClusterIn(t testing.TB, dir string, opts dev.PostgresOptions) *dev.Postgres {
	t.Helper()
	pg, err := small(t.Context(), filepath.Join(dir, "pg"), opts)
	if err != nil {
		t.Fatalf("devtest: %v", err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(dev.StopImmediate); err != nil {
			t.Errorf("devtest: %v", err)
		}
	})
	return pg
}

// hashOnce stores the password of the DSN's role as a verifier of RFC 5803 with one round.
func hashOnce(ctx context.Context, dsn string) error {
	admin, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	role := admin.Config()
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // it never fails
	salted, err := pbkdf2.Key(sha256.New, role.Password, salt, 1, sha256.Size)
	if err == nil {
		text := base64.StdEncoding.EncodeToString
		stored := sha256.Sum256(sign(salted, "Client Key"))
		verifier := fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", text(salt), text(stored[:]), text(sign(salted, "Server Key")))
		_, err = admin.Exec(ctx, fmt.Sprintf("ALTER ROLE %s PASSWORD '%s'", pgx.Identifier{role.User}.Sanitize(), verifier))
	}
	return errors.Join(err, admin.Close(ctx))
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // it never fails
	return mac.Sum(nil)
}
