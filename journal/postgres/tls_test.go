package postgres

import (
	"net/url"
	"os"
	osuser "os/user"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
)

// give makes the file that of the user of the server.
func give(t *testing.T, file string) {
	t.Helper()
	if os.Getuid() != 0 {
		return // the server runs as this user
	}
	who, err := osuser.Lookup("postgres")
	if err != nil {
		who, err = osuser.Lookup("nobody")
	}
	require.NoError(t, err)
	uid := must(strconv.Atoi(who.Uid))(t)
	require.NoError(t, os.Chown(file, uid, -1))
}

// S6: TLS is that of pgx: the server's certificate is verified against an authority of the
// operator's own, and the client's certificate is the login.
func TestS6TLS(t *testing.T) {
	t.Parallel()
	files := devtest.NewCertificates(t, "quipu")
	give(t, files.ServerKey)
	pg := letting(t, "hostssl all quipu 127.0.0.1/32 cert", map[string]string{
		"ssl_cert_file": files.ServerCert, "ssl_key_file": files.ServerKey, "ssl_ca_file": files.CA, "ssl": "on",
	})
	dsn := func(options map[string]string) string {
		u := must(url.Parse(pg.DSN("quipu")))(t)
		u.User = url.User("quipu")
		q := url.Values{}
		for name, value := range options {
			q.Set(name, value)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	whole := map[string]string{"sslmode": "verify-full", "sslrootcert": files.CA, "sslcert": files.ClientCert, "sslkey": files.ClientKey}
	require.Eventually(t, func() bool { // the server has read its settings
		s, err := Open(t.Context(), Config{DSN: dsn(whole), Space: "test-1", Migrating: true})
		if err == nil {
			s.Close()
		}
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	s := openIn(t, dsn(whole))
	startJobs(t, s, "k")
	openCommitter(t, s)
	require.NoError(t, s.with(t.Context(), func(c *conn) error {
		r := c.pg.ExecParams(t.Context(), "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'quipu' AND NOT ssl AND backend_type = 'client backend'", nil, nil, nil, nil).Read()
		require.NoError(t, r.Err)
		require.Equal(t, "0", string(r.Rows[0][0]), "no connection is in clear")
		return nil
	}))

	for name, c := range map[string]struct {
		change map[string]string
		says   string
	}{
		"in clear":              {map[string]string{"sslmode": "disable"}, "pg_hba.conf"},
		"no certificate":        {map[string]string{"sslmode": "verify-full", "sslrootcert": files.CA}, "certificate"},
		"another authority":     {map[string]string{"sslmode": "verify-full"}, "the certificate of the database's server is not accepted"},
		"a file that is absent": {map[string]string{"sslmode": "verify-full", "sslrootcert": "/none.pem"}, "/none.pem"},
	} {
		_, err := Open(t.Context(), Config{DSN: dsn(c.change), Space: "test-1"})
		require.Error(t, err, name)
		require.ErrorContains(t, err, c.says, name)
		require.NotErrorIs(t, err, store.ErrSchema, name)
	}
}
