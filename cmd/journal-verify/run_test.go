package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/replaytest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/replay"
)

func TestMain(m *testing.M) { devtest.Main(m) }

// jobs makes honest journals with the keys job-0, job-1, …
func jobs(n int) []*replaytest.Journal {
	out := make([]*replaytest.Journal, n)
	for i := range out {
		out[i] = replaytest.Honest(replaytest.Options{
			Key: "job-" + strconv.Itoa(i), Activities: 4, Effects: true,
			Choose: rand.New(rand.NewPCG(uint64(i), 7)).IntN,
		})
	}
	return out
}

func exported(t *testing.T, list ...*replaytest.Journal) []byte {
	t.Helper()
	var b bytes.Buffer
	w := export.NewWriter(&b)
	for _, j := range list {
		h := j.Header
		require.NoError(t, w.Begin(export.Header{
			Space: h.Space, Job: h.Job, Generation: h.Generation, Key: h.Key, Head: h.Head, Flow: h.Flow,
		}))
		for _, rec := range j.Records {
			require.NoError(t, w.Write(rec))
		}
	}
	require.NoError(t, w.Flush())
	return b.Bytes()
}

func save(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "export.jsonl")
	require.NoError(t, os.WriteFile(name, data, 0o600))
	return name
}

// objects reads what --json has printed.
func objects(t *testing.T, r clitest.Result) []jobView {
	t.Helper()
	var all []jobView
	dec := json.NewDecoder(strings.NewReader(r.Out))
	dec.DisallowUnknownFields()
	for {
		var v jobView
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, r.Out)
		all = append(all, v)
	}
}

func command(t *testing.T, open opener, env map[string]string, stdin string, args ...string) clitest.Result {
	t.Helper()
	return clitest.Do(t, func(ctx context.Context, args []string, s cli.Streams) int {
		return run(ctx, args, s, open)
	}, env, stdin, args...)
}

// tampered changes a time in the middle of a journal.
func tampered(j *replaytest.Journal) *replaytest.Journal {
	c := j.Clone()
	b := c.Records[3].Body
	copy(b[bytes.Index(b, []byte(`"t":17`)):], `"t":18`)
	return c
}

// The connection string is a secret: no output shows it.
func TestConnectionStringIsNotShown(t *testing.T) {
	t.Parallel()
	env := map[string]string{"QUIPU_POSTGRES": "postgres://u:hunter2@h/d"}
	open := func(_ context.Context, _, space string) (reader, error) {
		require.Equal(t, defaultSpace, space)
		return nil, store.ErrUnavailable
	}
	for _, args := range [][]string{{"--help"}, {"--frob"}, {}} {
		r := command(t, open, env, "", args...)
		require.NotContains(t, r.Out+r.Err, "hunter2")
	}
}

// If the output cannot be written, nothing is proved.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	name := save(t, exported(t, jobs(1)...))
	var errs bytes.Buffer
	require.Equal(t, exitUnreadable,
		run(t.Context(), []string{name}, cli.Streams{Out: brokenWriter{}, Err: &errs}, nil))
	require.Contains(t, errs.String(), "no space left")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, exitUnreadable,
		run(ctx, []string{save(t, exported(t, jobs(3)...))}, cli.Streams{Out: io.Discard, Err: io.Discard}, nil))
}

// database is a reader over journals.
type database struct {
	list   []*replaytest.Journal
	broken error
	closed bool
	chain  replay.SpaceChain // of the space itself
}

func (d *database) SpaceChain(context.Context) (*replay.SpaceChain, error) { return &d.chain, nil }

func (d *database) Space(context.Context) (string, error) { return "test", nil }
func (d *database) Close()                                { d.closed = true }

func (d *database) Counts(context.Context) (map[journal.JobState]int64, error) {
	return map[journal.JobState]int64{journal.JobCompleted: int64(len(d.list))}, nil
}

func (d *database) FindJob(_ context.Context, key string) (journal.JobID, error) {
	for _, j := range d.list {
		if j.Header.Key == key {
			return j.Header.Job, nil
		}
	}
	return journal.JobID{}, store.ErrNotFound
}

func (d *database) AuditJobs(_ context.Context, only []journal.JobID) iter.Seq2[journal.JobID, error] {
	return func(yield func(journal.JobID, error) bool) {
		for _, j := range d.list {
			if (only == nil || slices.Contains(only, j.Header.Job)) && !yield(j.Header.Job, nil) {
				return
			}
		}
		if d.broken != nil {
			yield(journal.JobID{}, d.broken)
		}
	}
}

func (d *database) Audit(
	_ context.Context, id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error,
) error {
	i := slices.IndexFunc(d.list, func(j *replaytest.Journal) bool { return j.Header.Job == id })
	return visit(d.list[i].Audited, d.list[i].All())
}

// A running `worker dev` names the database if nothing else does. If none runs, the error says
// what to do.
func TestDevNamesTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, cli.DevFile{Postgres: "postgres://dev", Space: "shop"}.Write(dir))
	asked := ""
	env := map[string]string{"QUIPU_POSTGRES": "postgres://env"}
	open := func(_ context.Context, dsn, space string) (reader, error) {
		asked = dsn + " " + space
		return nil, store.ErrUnavailable
	}
	for want, args := range map[string][]string{
		"postgres://dev shop":     {"--dev", dir},
		"postgres://dev other":    {"--dev", dir, "--space", "other"},
		"postgres://env default":  {},
		"postgres://flag default": {"--dev", dir, "--postgres", "postgres://flag"},
	} {
		command(t, open, env, "", args...)
		require.Equal(t, want, asked)
	}
	r := command(t, open, env, "", "--dev", t.TempDir())
	require.Equal(t, exitUnreadable, r.Code)
	require.Contains(t, r.Err, "start `worker dev --data")
}

// TestTranscripts runs the command as the file in testdata says. files takes flags and files: one
// and six honest journals; three, of which the second is changed; bad, a changed one; function, a
// durable function that waits; cut, flipped and empty; - is stdin, with two. database takes flags,
// jobs=… and spoil=…, the one whose row is changed; with broken, listing its jobs fails at the end.
func TestTranscripts(t *testing.T) { // not parallel: it changes the directory, so that names of files are short
	list := jobs(6)
	nap, ok := replaytest.Sleep("nap", "1", 3600e6), replaytest.Signal("ok", "2", "order.ok", "order-42", 0)
	kid := replaytest.Child("kid", "4", "child", `{"n":1}`)
	function := replaytest.NewFunction(collation.Mode{}).Effect("3", "pay", "guarded", `{"id":7}`).Suspend(nap, ok).Wake("nap").Suspend(ok, kid)
	two := exported(t, list[:2]...)
	flipped := slices.Clone(two)
	flipped[bytes.IndexByte(flipped, '\n')+100] ^= 0x80
	path, err := filepath.Abs("testdata/command.txt")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	for name, data := range map[string][]byte{
		"one": exported(t, list[0]), "six": exported(t, list...), "three": exported(t, list[0], tampered(list[1]), list[2]),
		"bad": exported(t, tampered(list[0])), "function": exported(t, function.Journal()), "cut": two[:len(two)-20], "flipped": flipped, "empty": nil,
		"a_name_longer_than_its_column": nil,
	} {
		require.NoError(t, os.WriteFile(name, data, 0o600))
	}
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		args := []string{} // nil would be those of the test
		db := &database{}
		for _, a := range d.CmdArgs {
			n := 0
			if len(a.Vals) > 0 {
				var err error
				n, err = strconv.Atoi(a.Vals[0])
				require.NoError(t, err)
			}
			switch a.Key {
			case "jobs":
				db.list = jobs(n)
			case "spoil":
				db.list[n].Audited.Job.Semaphore += 2
			case "broken":
				db.broken = errors.New("connection lost")
			default:
				args = append(args, a.Key)
			}
		}
		var r clitest.Result
		if d.Cmd == "database" {
			r = online(t, db, args...)
		} else {
			r = command(t, nil, nil, string(two), args...)
		}
		return ids.ReplaceAllString(fmt.Sprintf("exit %d\n%s%s", r.Code, r.Out, r.Err), "…")
	})
}

// ids are left out of what the file expects.
var ids = regexp.MustCompile(`[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}([0-9a-f]{32})?`)
