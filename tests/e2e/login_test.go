package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/gobuild"
)

const helloFlow = `{"flow": "hello", "version": "1", "activities": {"start": {"type": "trigger"}, "greet": {"type": "worker", "topic": "echo", "input": {}}},
  "transitions": {"start": ["greet"]}}`

// secured is a server that asks for TLS and a login, and what a client needs for it.
type secured struct {
	opts  *natsserver.Options
	flags []string // of worker and quipu
	nats  []natsgo.Option
}

// secretFile writes a secret of the test.
func secretFile(t *testing.T, name string, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// withNKey asks for a client certificate and an NKey.
func withNKey(t *testing.T, c devtest.Certificates, opts *natsserver.Options) secured {
	t.Helper()
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := user.PublicKey()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	opts.Nkeys = []*natsserver.NkeyUser{{Nkey: public}}
	opts.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
	path := secretFile(t, "user.nk", seed)
	login, err := natsgo.NkeyOptionFromSeed(path)
	require.NoError(t, err)
	return secured{
		opts,
		[]string{"--nats-ca", c.CA, "--nats-cert", c.ClientCert, "--nats-key", c.ClientKey, "--nats-nkey", path},
		[]natsgo.Option{natsgo.RootCAs(c.CA), natsgo.ClientCert(c.ClientCert, c.ClientKey), login},
	}
}

// withCredentials has accounts by JWT, and asks for credentials.
func withCredentials(t *testing.T, c devtest.Certificates, opts *natsserver.Options) secured {
	t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		key, err := make()
		require.NoError(t, err)
		public, err := key.PublicKey()
		require.NoError(t, err)
		return key, public
	}
	operator, operatorID := pair(nkeys.CreateOperator)
	account, accountID := pair(nkeys.CreateAccount)
	user, userID := pair(nkeys.CreateUser)
	claims := jwt.NewAccountClaims(accountID)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	accountJWT, err := claims.Encode(operator)
	require.NoError(t, err)
	_, systemID := pair(nkeys.CreateAccount)
	systemJWT, err := jwt.NewAccountClaims(systemID).Encode(operator)
	require.NoError(t, err)
	accounts := &natsserver.MemAccResolver{}
	require.NoError(t, accounts.Store(accountID, accountJWT))
	require.NoError(t, accounts.Store(systemID, systemJWT))
	opts.TrustedKeys, opts.AccountResolver, opts.SystemAccount = []string{operatorID}, accounts, systemID
	userJWT, err := jwt.NewUserClaims(userID).Encode(account)
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	creds, err := jwt.FormatUserConfig(userJWT, seed)
	require.NoError(t, err)
	path := secretFile(t, "user.creds", creds)
	return secured{opts, []string{"--nats-ca", c.CA, "--nats-creds", path}, []natsgo.Option{natsgo.RootCAs(c.CA), natsgo.UserCredentials(path)}}
}

// S5: worker and quipu reach a server that asks for TLS with an authority of its own, a client
// certificate and an NKey, or for credentials; and the streams are as the flags say. Without the
// login they say what was refused.
func TestS5EveryCommandLogsIn(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, gobuild.Build("", bin, "../../cmd/worker", "../../cmd/quipu"))
	for name, secure := range map[string]func(*testing.T, devtest.Certificates, *natsserver.Options) secured{
		"client certificate and NKey": withNKey, "credentials": withCredentials,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := devtest.NewCertificates(t, "worker")
			pair, err := tls.LoadX509KeyPair(c.ServerCert, c.ServerKey)
			require.NoError(t, err)
			authorities := x509.NewCertPool()
			text, err := os.ReadFile(c.CA)
			require.NoError(t, err)
			require.True(t, authorities.AppendCertsFromPEM(text))
			s := secure(t, c, &natsserver.Options{
				Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
				TLSConfig: &tls.Config{
					MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: authorities,
				}, TLSTimeout: 10,
			})
			server := devtest.NATSOf(t, s.opts)
			servers := []string{"--postgres", devtest.Postgres(t), "--nats", server.ClientURL(), "--space", "shop"}

			bounded, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			out, err := exec.CommandContext(bounded, filepath.Join(bin, "worker"), append(servers, "--wait", "10s")...).CombinedOutput()
			require.Error(t, err)
			require.Regexp(t, "certificate|[Aa]uthorization", string(out))

			connect := append(servers, s.flags...)
			worker := exec.CommandContext(t.Context(), filepath.Join(bin, "worker"), append(connect, "--nats-max-mib", "64", "--nats-max-age", "36h", "--nats-prefix", "acme")...)
			said := &devtest.Log{Keep: keepLog}
			worker.Stderr = said
			require.NoError(t, worker.Start())
			ended := make(chan error, 1)
			go func() { ended <- worker.Wait() }()
			defer func() {
				require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
				require.NoError(t, devtest.Await(t, "the end of the worker", ended), said.String())
			}()
			quipu := func(args ...string) string {
				out, err := exec.CommandContext(bounded, filepath.Join(bin, "quipu"),
					append(append(args, connect...), "--nats-prefix", "acme")...).CombinedOutput()
				require.NoError(t, err, "%s\n%s", out, said.String())
				return string(out)
			}
			nc, err := natsgo.Connect(server.ClientURL(), s.nats...)
			require.NoError(t, err)
			defer nc.Close()
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			var stream jetstream.Stream
			require.Eventually(t, func() bool {
				stream, err = js.Stream(t.Context(), "ACME_shop_WORK")
				return err == nil
			}, patience, 20*time.Millisecond, "the worker makes its streams")
			require.Equal(t, int64(64<<20), stream.CachedInfo().Config.MaxBytes)
			require.Equal(t, 36*time.Hour, stream.CachedInfo().Config.MaxAge)
			quipu("deploy", secretFile(t, "hello.json", []byte(helloFlow)))
			quipu("start", "hello", "hello-1")
			require.Contains(t, quipu("wait", "hello-1", "--timeout", patience.String()), "completed")
		})
	}
}
