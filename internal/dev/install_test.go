package dev

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Debian's own cluster must be forbidden after postgresql-common is installed and before
// postgresql is.
func TestInstallMakesNoMainCluster(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "createcluster.conf")
	require.NoError(t, os.WriteFile(conf, []byte("#create_main_cluster = true"), 0o644))
	var ran []string
	var out bytes.Buffer
	i := installer{
		root: true, conf: conf, out: &out,
		look: func(file string) (string, error) { return "/usr/bin/" + file, nil },
		run: func(_ context.Context, _ io.Writer, name string, args ...string) error {
			text, err := os.ReadFile(conf)
			require.NoError(t, err)
			forbidden := strings.Contains(string(text), "\ncreate_main_cluster = false\n")
			if args[len(args)-1] == "postgresql" {
				require.True(t, forbidden)
			}
			ran = append(ran, name+" "+args[0]+" "+args[len(args)-1])
			return nil
		},
	}
	require.NoError(t, i.install(t.Context()))
	require.NoError(t, i.install(t.Context()), "twice is no harm")
	require.Equal(t, []string{"apt-get update -q", "apt-get install postgresql-common", "apt-get install postgresql"}, ran[:3])
	text, err := os.ReadFile(conf)
	require.NoError(t, err)
	require.Equal(t, "#create_main_cluster = true\ncreate_main_cluster = false\n", string(text))
	require.Contains(t, out.String(), "apt-get install")
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, installer{}.install(t.Context()), "root")
	none := installer{root: true, look: func(string) (string, error) { return "", errors.New("not found") }}
	require.ErrorContains(t, none.install(t.Context()), "apt-get")
	broken := installer{
		root: true, out: io.Discard, look: func(string) (string, error) { return "", nil },
		run: func(context.Context, io.Writer, string, ...string) error { return errors.New("no network") },
	}
	require.ErrorContains(t, broken.install(t.Context()), "apt-get update -q: no network")
}
