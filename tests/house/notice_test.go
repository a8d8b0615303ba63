package house

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write NOTICE instead of comparing it")

// notice is the file with the licenses of what the commands contain.
const notice = root + "/NOTICE"

const noticeHead = `Quipu
The commands of cmd/, built for linux, contain the modules below and Go's standard library,
which has the license of golang.org/x/sys. Their licenses follow, each with the modules that
it is of.

Written by: go test ./tests/house -run Notice -update
`

// linked is a module that is linked into a command.
type linked struct {
	Path, Version, Dir string
	Main               bool
}

func (m linked) String() string { return m.Path + " " + m.Version }

// legal are the names of files that have to go with a binary.
var legal = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents|copyright)(\.(txt|md))?$`)

// modules are those of the commands, of linux whatever the machine is, by path.
func modules(t *testing.T) []linked {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Module", "./cmd/...")
	cmd.Dir, cmd.Env = filepath.FromSlash(root), append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	raw, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	all := map[string]linked{}
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var p struct{ Module *linked }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		if p.Module != nil && !p.Module.Main {
			all[p.Module.Path] = *p.Module
		}
	}
	out := make([]linked, 0, len(all))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[path])
	}
	return out
}

// noticeOf is what NOTICE says of modules. A text that several have stands once.
func noticeOf(t *testing.T, all []linked) string {
	t.Helper()
	type license struct {
		text string
		of   []string
	}
	var order []*license
	known := map[[sha256.Size]byte]*license{}
	for _, m := range all {
		files, err := os.ReadDir(m.Dir)
		require.NoError(t, err)
		has := false
		for _, f := range files {
			if !legal.MatchString(f.Name()) {
				continue
			}
			has = true
			raw, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
			require.NoError(t, err)
			text := tidied(string(raw))
			sum := sha256.Sum256([]byte(strings.Join(strings.Fields(text), " ")))
			if known[sum] == nil {
				known[sum] = &license{text: text}
				order = append(order, known[sum])
			}
			known[sum].of = append(known[sum].of, m.Path)
		}
		require.True(t, has, "%s has no license: do without it", m.Path)
	}
	var b strings.Builder
	b.WriteString(noticeHead + "\n")
	for _, m := range all {
		fmt.Fprintln(&b, m)
	}
	for _, l := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(l.of, "\n"), l.text)
	}
	return b.String()
}

// tidied is a text without spaces at the ends of lines and of itself.
func tidied(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// S16: NOTICE has the licenses of what the commands contain, of these versions.
func TestS16NoticeIsCurrent(t *testing.T) {
	t.Parallel()
	want := noticeOf(t, modules(t))
	if *update {
		require.NoError(t, os.WriteFile(notice, []byte(want), 0o644))
	}
	got, err := os.ReadFile(notice)
	require.NoError(t, err)
	require.True(t, want == string(got), "NOTICE is not that of go.mod: go test ./tests/house -run Notice -update")
}
