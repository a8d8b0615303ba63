package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/dev/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/journal/store"
	"github.com/quipu-journal/quipu/replay"
	"github.com/quipu-journal/quipu/replay/replaytest"
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

// result is one run of the command.
type result struct {
	code     int
	out, err string
}

func (r result) objects(t *testing.T) []jobView {
	t.Helper()
	var all []jobView
	dec := json.NewDecoder(strings.NewReader(r.out))
	dec.DisallowUnknownFields()
	for {
		var v jobView
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, r.out)
		all = append(all, v)
	}
}

func command(t *testing.T, env environment, stdin io.Reader, args ...string) result {
	t.Helper()
	if env.getenv == nil {
		env.getenv = func(string) string { return "" }
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), env, args, stdin, &out, &errs)
	return result{code, out.String(), errs.String()}
}

func files(t *testing.T, args ...string) result {
	t.Helper()
	return command(t, environment{}, strings.NewReader(""), args...)
}

// tampered changes a time in the middle of a journal.
func tampered(j *replaytest.Journal) *replaytest.Journal {
	c := j.Clone()
	b := c.Records[3].Body
	copy(b[bytes.Index(b, []byte(`"t":17`)):], `"t":18`)
	return c
}

func TestFilesProved(t *testing.T) {
	t.Parallel()
	list := jobs(6)
	one, two := save(t, exported(t, list[:4]...)), save(t, exported(t, list[4:]...))
	r := files(t, one, two)
	require.Equal(t, exitProved, r.code, r.err)
	require.Empty(t, r.err)
	require.Contains(t, r.out, "6 proved, 0 violated, 0 unreadable")
	require.Contains(t, r.out, "no tables in this input")
	require.Contains(t, r.out, "without a seal")
	last := -1
	for _, j := range list {
		at := strings.Index(r.out, j.Header.Job.String())
		require.Greater(t, at, last, "the order of the input is kept")
		last = at
	}
	again := command(t, environment{}, bytes.NewReader(exported(t, list...)), "-")
	require.Equal(t, exitProved, again.code)
	require.Equal(t, r.out, again.out)
}

func TestFilesJSON(t *testing.T) {
	t.Parallel()
	list := jobs(3)
	list[1] = tampered(list[1])
	r := files(t, "--json", save(t, exported(t, list...)))
	require.Equal(t, exitViolated, r.code, r.err)
	objects := r.objects(t)
	require.Len(t, objects, 3)
	for i, v := range objects {
		require.Equal(t, list[i].Header.Job.String(), v.Job)
		require.Equal(t, list[i].Header.Key, v.Key)
		require.Equal(t, list[i].Header.Head.Seq, v.Head.Seq)
		require.EqualValues(t, len(list[i].Records), v.Counts.Entries)
		require.Len(t, v.Checks, len(replay.Checks))
	}
	require.Equal(t, []string{"proved", "violated", "proved"}, []string{objects[0].Result, objects[1].Result, objects[2].Result})
	bad := slices.IndexFunc(objects[1].Checks, func(c checkView) bool { return c.Result == "violated" })
	require.Equal(t, "V2", objects[1].Checks[bad].ID)
	require.EqualValues(t, 4, objects[1].Checks[bad].Seq)
	require.Contains(t, objects[1].Checks[bad].Message, "the hash of entry 4")
}

// Exit code 1 for a violation, 2 for what could not be checked. A violation wins, since it stays
// one whatever else is found.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	list := jobs(2)
	good := exported(t, list...)
	clean, bad := save(t, good), save(t, exported(t, tampered(list[0])))
	cut := save(t, good[:len(good)-20])
	flipped := slices.Clone(good)
	flipped[bytes.IndexByte(flipped, '\n')+100] ^= 0x80
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"proved":            {[]string{clean}, exitProved, "2 proved"},
		"violated":          {[]string{clean, bad}, exitViolated, "V2 at entry 4"},
		"cut":               {[]string{cut}, exitUnreadable, "the file ends within the line"},
		"a flipped bit":     {[]string{save(t, flipped)}, exitUnreadable, "line 2"},
		"missing":           {[]string{clean, "/no/such/file"}, exitUnreadable, "no such file"},
		"empty":             {[]string{save(t, nil)}, exitUnreadable, "the file is empty"},
		"violated and cut":  {[]string{cut, bad}, exitViolated, "V2 at entry 4"},
		"cut after a fault": {[]string{bad, cut}, exitViolated, "unreadable"},
		"nothing":           {nil, exitUnreadable, "give --postgres"},
		"both":              {[]string{"--postgres", "x", clean}, exitUnreadable, "give one of them"},
		"job of a file":     {[]string{"--job", "a", clean}, exitUnreadable, "jobs of a database"},
		"unknown flag":      {[]string{"--frob"}, exitUnreadable, "unknown flag"},
		"help":              {[]string{"--help"}, exitProved, "Exit codes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := files(t, c.args...)
			require.Equal(t, c.code, r.code, r.out+r.err)
			require.Contains(t, r.out+r.err, c.says)
		})
	}
}

// --quiet prints only what is not proved, and the sum, which reads well for one job, too.
func TestQuiet(t *testing.T) {
	t.Parallel()
	list := jobs(3)
	bad := tampered(list[1])
	all, one, violated := save(t, exported(t, list[0], bad, list[2])), save(t, exported(t, list[0])), save(t, exported(t, bad))

	r := files(t, "--quiet", all)
	require.Equal(t, exitViolated, r.code)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Contains(t, lines[0], bad.Header.Job.String())
	require.Contains(t, lines[1], "V2 at entry 4")
	require.Regexp(t, `^3 jobs, \d+ entries, \d+ open obligations?: 2 proved, 1 violated, 0 unreadable\.$`, lines[len(lines)-1])
	require.NotContains(t, r.out, list[0].Header.Job.String())
	require.NotContains(t, r.out, "CHECK")

	require.Regexp(t, `^1 job, \d+ entries, \d+ open obligations?: proved\.\n$`, files(t, "--quiet", one).out)
	require.Regexp(t, `(?m)^1 job, \d+ entries, \d+ open obligations?: it violates the laws above\.$`, files(t, violated).out)
	require.Contains(t, files(t, save(t, nil)).out, "1 job: it could not be read.\n")

	objects := files(t, "--quiet", "--json", all).objects(t)
	require.Len(t, objects, 1)
	require.Equal(t, bad.Header.Job.String(), objects[0].Job)
}

// The connection string is a secret: no output shows it.
func TestConnectionStringIsNotShown(t *testing.T) {
	t.Parallel()
	env := environment{
		getenv: func(name string) string {
			return map[string]string{"QUIPU_POSTGRES": "postgres://u:hunter2@h/d"}[name]
		},
		open: func(_ context.Context, _, space string) (reader, error) {
			require.Equal(t, defaultSpace, space)
			return nil, store.ErrUnavailable
		},
	}
	for _, args := range [][]string{{"--help"}, {"--frob"}, {}} {
		r := command(t, env, nil, args...)
		require.NotContains(t, r.out+r.err, "hunter2")
	}
}

// If the output cannot be written, nothing is proved.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	name := save(t, exported(t, jobs(1)...))
	var errs bytes.Buffer
	env := environment{getenv: func(string) string { return "" }}
	require.Equal(t, exitUnreadable, run(t.Context(), env, []string{name}, nil, brokenWriter{}, &errs))
	require.Contains(t, errs.String(), "no space left")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := environment{getenv: func(string) string { return "" }}
	require.Equal(t, exitUnreadable, run(ctx, env, []string{save(t, exported(t, jobs(3)...))}, nil, io.Discard, io.Discard))
}

// database is a reader over journals.
type database struct {
	list   []*replaytest.Journal
	broken error
	closed bool
}

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

func (d *database) Audit(_ context.Context, id journal.JobID, visit func(*store.Stored, iter.Seq2[journal.Record, error]) error) error {
	i := slices.IndexFunc(d.list, func(j *replaytest.Journal) bool { return j.Header.Job == id })
	return visit(stored(d.list[i]), d.list[i].All())
}

// A running `worker dev` names the database if nothing else does. If none runs, the error says
// what to do.
func TestDevNamesTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, cli.DevFile{Postgres: "postgres://dev", Space: "shop"}.Write(dir))
	asked := ""
	env := environment{
		getenv: func(name string) string { return map[string]string{"QUIPU_POSTGRES": "postgres://env"}[name] },
		open: func(_ context.Context, dsn, space string) (reader, error) {
			asked = dsn + " " + space
			return nil, store.ErrUnavailable
		},
	}
	for want, args := range map[string][]string{
		"postgres://dev shop":     {"--dev", dir},
		"postgres://dev other":    {"--dev", dir, "--space", "other"},
		"postgres://env default":  {},
		"postgres://flag default": {"--dev", dir, "--postgres", "postgres://flag"},
	} {
		command(t, env, nil, args...)
		require.Equal(t, want, asked)
	}
	r := command(t, env, nil, "--dev", t.TempDir())
	require.Equal(t, exitUnreadable, r.code)
	require.Contains(t, r.err, "start `worker dev --data")
}
