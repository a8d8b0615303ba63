package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu/internal/testkit/world"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/cmd/internal/cli/clitest"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/export"
	"github.com/quipu-journal/quipu/journal/postgres"
	"github.com/quipu-journal/quipu/workers"
)

// space is a space with a running runtime, and quipu pointed at it. A test that has one runs beside
// others.
type space struct {
	t   *testing.T
	env map[string]string
}

func newSpace(t *testing.T) *space {
	t.Helper()
	t.Parallel()
	reg := workers.New()
	workers.RegisterBuiltins(reg)
	workers.Handle(reg, "cut", cutOff)
	workers.HandleDurable(reg, "book", func(ctx context.Context, _ any) (any, error) {
		id := workers.Info(ctx).Key
		out, err := workers.Child[any](ctx, "pay", "declined", map[string]any{}, workers.ChildKey(id+"/pay"))
		if err != nil {
			return nil, fmt.Errorf("booked in vain: %w", err)
		}
		return out, nil
	})
	workers.Handle(reg, "panics", func(context.Context, any) (any, error) { panic("no till\nat all") })
	s, _ := spaceOf(t, reg)
	return s
}

// spaceOf makes a space whose runtime has these handlers.
func spaceOf(t *testing.T, reg *workers.Registry) (*space, *world.World) {
	t.Helper()
	w := world.New(t, "")
	cfg := w.Config()
	cfg.Workers = reg
	w.Serve(cfg)
	return &space{t: t, env: map[string]string{"QUIPU_POSTGRES": cfg.Postgres, "QUIPU_NATS": cfg.NATS, "USER": "ada"}}, w
}

// cutOff is cut off in the middle of a call outside, so nobody knows whether it was done. As a
// Guarded effect it is parked for a person (E3). An operator who knows better has it done again.
func cutOff(ctx context.Context, in struct{ OnRetry string }) (string, error) {
	return effects.Do(ctx, "call", func(context.Context) (string, error) {
		if workers.Info(ctx).Turn > 1 {
			return in.OnRetry, nil
		}
		return "", errors.New("connection cut off")
	}, effects.Guarded)
}

// do runs quipu; ok also wants exit code 0.
func (s *space) do(stdin string, args ...string) clitest.Result {
	s.t.Helper()
	return clitest.Do(s.t, run, s.env, stdin, args...)
}

func (s *space) ok(stdin string, args ...string) string {
	s.t.Helper()
	r := s.do(stdin, args...)
	require.Zero(s.t, r.Code, "quipu %v: %s", args, r.Err)
	return r.Out
}

func (s *space) fails(code int, stdin string, args ...string) clitest.Result {
	s.t.Helper()
	r := s.do(stdin, args...)
	require.Equal(s.t, code, r.Code, "quipu %v: %s%s", args, r.Out, r.Err)
	return r
}

const flows = `flow: FLOW
version: "VERSION"
input: {type: object, required: [name]}
activities:
  start: {type: trigger}
  step: {type: worker, topic: TOPIC, input: INPUT, retry: {attempts: 1}}
output: {text: "${ step.output }"}
transitions: {start: [step]}
`

func (s *space) deploy(flow, version, topic, input string, args ...string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), flow+".yaml")
	text := strings.NewReplacer("FLOW", flow, "VERSION", version, "TOPIC", topic, "INPUT", input).Replace(flows)
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o644))
	return s.ok("", append([]string{"deploy", path}, args...)...)
}

// objects decodes JSON Lines.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &o), line)
		all = append(all, o)
	}
	return all
}

func TestDeployAndActivate(t *testing.T) {
	s := newSpace(t)
	require.Equal(t, "flow hello version 1 deployed, active\n", s.deploy("hello", "1", "echo", `{a: 1}`))
	require.Equal(t, "flow hello version 1 was deployed, active\n", s.deploy("hello", "1", "echo", `{a: 1}`))
	require.Contains(t, s.deploy("hello", "2", "echo", `{a: 2}`, "--inactive"), "new jobs take version 1; `quipu activate hello 2`")
	require.Contains(t, s.deploy("hello", "2", "echo", `{a: 2}`), "new jobs take version 1", "it was there: nothing is taken")
	s.ok("", "activate", "hello", "2")
	require.Contains(t, s.deploy("hello", "3", "echo", `{a: 3}`), "version 3 deployed, active")
	require.Contains(t, s.deploy("hello", "2", "echo", `{a: 2}`), "new jobs take version 3", "an old file takes nothing back")
	path := filepath.Join(t.TempDir(), "h.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: hello\nversion: \"1\"\nactivities: {start: {type: trigger}}\n"), 0o644))
	require.Contains(t, s.fails(codeRefused, "", "deploy", path).Err, "give the changed flow a new version")
	require.Contains(t, s.fails(codeNotFound, "", "activate", "hello", "9").Err, "quipu flows")
	listed := objects(t, s.ok("", "flows", "-o", "json"))
	require.Len(t, listed, 3)
	for _, f := range listed {
		require.Equal(t, f["version"] == "3", f["active"], "%v", f)
	}
	shown := filepath.Join(t.TempDir(), "shown.json")
	require.NoError(t, os.WriteFile(shown, []byte(s.ok("", "flows", "show", "hello", "2")), 0o644))
	require.Contains(t, s.ok("", "deploy", shown), "flow hello version 2 was deployed", "what is shown is the same flow")
	require.Equal(t, "~ activities.step.input.a: 2 → 3\n~ version: \"2\" → \"3\"\n", s.ok("", "flows", "diff", "hello", "2", "3"))
	require.Len(t, objects(t, s.ok("", "flows", "diff", "hello", "1", "3", "-o", "json")), 2)
	require.Contains(t, s.fails(codeNotFound, "", "flows", "diff", "hello", "2", "9").Err, `version "9"`)
	require.Contains(t, s.fails(codeNotFound, "", "ls", "--flow", "hallo").Err, "no version of flow hallo is deployed")
	require.Empty(t, s.ok("", "ls", "--flow", "hello"))
	require.Contains(t, s.ok("", "flows"), "FLOW   VERSION  ACTIVE")
}

func TestStartOne(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	require.Contains(t, s.ok("", "start", "hello", "k1", "--input", `{"name":"Ada"}`), "k1 started (job ")
	require.Contains(t, s.ok(`{"name":"Ada"}`, "start", "hello", "k1", "--input", "-"), "was started already")
	require.Contains(t, s.fails(codeRefused, "", "start", "hello", "k1", "--input", `{"name":"Bob"}`).Err, "another input")
	s.ok("", "start", "hello", "t1", "--input", `{"name":"Ada"}`, "--tag", "vip", "--tag", "customer:42", "--at", "2001-01-01T00:00:00Z")
	s.ok(`{"flow":"hello","key":"t2","input":{"name":"Bob"},"tags":["vip"],"delay":"24h","version":"1"}`, "start", "-")
	require.Equal(t, "t2\nt1\n", s.ok("", "ls", "--tag", "vip", "-k"))
	require.Equal(t, "t1\n", s.ok("", "ls", "--tag", "vip", "--tag", "customer:42", "-k"))
	require.Contains(t, s.ok("", "show", "t1"), "tags     customer:42, vip\n")
	require.Contains(t, s.ok("", "why", "t2"), "the job starts in 23 h 59 min, at ")
	require.Contains(t, s.ok("", "log", "t2"), "not before ")
	require.Contains(t, s.fails(cli.CodeUsage, "", "start", "hello", "t3", "--at", "tomorrow").Err, "--at")
	require.Contains(t, s.fails(codeRefused, "", "start", "hello", "t3", "--input", `{"name":"Ada"}`, "--tag", "").Err, "a tag is 1 to 64 bytes")
	require.Contains(t, s.fails(codeRefused, `{"flow":"hello","key":"t4","input":{"name":"Bob"},"delay":"soon"}`, "start", "-").Err, "line 1: time: invalid duration")
	s.deploy("other", "1", "echo", "{}")
	require.Contains(t, s.fails(codeRefused, "", "start", "other", "k1", "--input", `{"name":"Ada"}`).Err, "of flow hello version 1")
	require.Contains(t, s.fails(codeRefused, "", "start", "hello", "k2", "--input", `{"nam":"Ada"}`).Err, "name")
	require.Contains(t, s.fails(codeRefused, "", "start", "hello", "--input", `{"name":"Ada"}`).Err, "identity: caller")
	require.Contains(t, s.fails(codeNotFound, "", "start", "none", "k").Err, "no version of flow none in space default: deploy it")
	require.Contains(t, s.fails(codeNotFound, "", "wait", "nope").Err, `no job has the key "nope" in space default`)
	require.Contains(t, s.fails(codeRefused, "", "signal", "a", "b", "{").Err, "no JSON (unexpected end of JSON input)")
	path := filepath.Join(t.TempDir(), "in.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"name":"Grace"}`), 0o644))
	o := objects(t, s.ok("", "start", "hello", "k3", "--input", "@"+path, "-o", "json"))
	require.Equal(t, "new", o[0]["start"])
	require.Equal(t, "k1  completed  {\"text\":\"Ada\"}\n", s.ok("", "wait", "k1"))
}

// E16: under identity strict the same input is the same job, whatever key is given.
func TestStartStrict_E16(t *testing.T) {
	s := newSpace(t)
	s.deployText("once", "flow: once\nversion: \"1\"\nidentity: strict\nactivities: {start: {type: trigger}}\n")
	started := s.ok("", "start", "once", "--input", `{"a":1}`)
	key, _, _ := strings.Cut(started, " ")
	require.Contains(t, s.ok("", "start", "once", "--input", `{"a": 1.0}`), "was started already")
	require.Contains(t, s.ok("", "start", "once", key, "--input", `{"a":1}`), "was started already")
	require.Contains(t, s.fails(codeRefused, "", "start", "once", "mine", "--input", `{"a":1}`).Err, "leave the key out")
	require.Equal(t, key+"\n", s.ok("", "ls", "-k"))
}

// More lines than a batch: refused lines are named and do not stop others; the same lines again
// change nothing.
func TestStartLines(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	var b strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&b, `{"flow":"hello","key":"k%04d","input":{"name":"n%d"}}`+"\n", i, i)
	}
	good := b.String()
	require.Equal(t, "1200 started, 0 already started, 0 refused\n", s.ok(good, "start", "-"))
	odd := `{"flow":"hello","key":"k0000","input":{"name":"other"}}` + "\n" +
		`{"flow":"hello","key":"x","input":{}}` + "\n\n" + // 1202, 1203
		"{\n" + // 1204
		`{"flow":"hello","key":"y","imput":{"name":"n"}}` + "\n" +
		`{"key":"y"}` + "\n" +
		`{"flow":"none","key":"y"}` + "\n" +
		`{"flow":"hello","key":"y","input":{"name":"n"},"key":"z"}` + "\n" +
		`{"Flow":"hello","key":"y","input":{"name":"n"}}` + "\n" +
		`{"flow":"hello","key":"last","input":{"name":"n"}}` // no end of line
	r := s.fails(codeRefused, good+odd, "start", "-", "-o", "json")
	require.JSONEq(t, `{"lines":1210,"started":1,"already":1200,"refused":8}`, r.Out)
	for _, said := range []string{"line 1201: the key \"", "line 1202: ", "line 1204: ", `line 1205: not canonical JSON: $.imput (byte `, `line 1206: "flow" is missing`, "line 1207: ", "$.key (byte 53): the member comes twice", "$.Flow"} {
		require.Contains(t, r.Err, said)
	}
	require.Len(t, strings.Split(strings.TrimSpace(s.ok("", "ls", "--limit", "0", "--keys", "--prefix", "k")), "\n"), 1200)
	ended := objects(t, s.ok(s.ok("", "ls", "--limit", "0", "-k"), "wait", "-", "-o", "json", "--timeout", "1m"))
	require.Len(t, ended, 1201)
	for _, o := range ended {
		require.Equal(t, "completed", o["state"])
	}
}

func TestListShowExport(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	s.deploy("bad", "1", "fail", `{code: 422, message: "no such customer"}`)
	s.ok("", "start", "hello", "h1", "--input", `{"name":"Ada"}`)
	s.ok("", "start", "bad", "b1", "--input", `{"name":"Ada"}`)
	r := s.fails(codeNotFound, "", "wait", "h1", "b1", "none", "--timeout", "1m")
	require.Contains(t, r.Out, "b1  failed  422")
	require.Contains(t, r.Err, `"none"`)
	s.fails(codeEnded, "", "wait", "b1")

	require.Equal(t, "h1\n", s.ok("", "ls", "--state", "completed", "-k"))
	require.Equal(t, "b1\n", s.ok("", "ls", "--flow", "bad", "-k"))
	require.Empty(t, s.ok("", "ls", "--prefix", "x"))
	require.Equal(t, "b1\n", s.ok("", "ls", "--limit", "1", "-k"), "newest first")
	require.Contains(t, s.ok("", "ls"), "KEY  FLOW   VERSION  STATE")
	require.Equal(t, "b1\nh1\n", s.ok("", "ls", "--state", "completed,failed", "--version", "1", "--from", "1h", "-k"))
	require.Empty(t, s.ok("", "ls", "--to", "1h", "-k"))
	require.Empty(t, s.ok("", "ls", "--version", "2", "-k"))
	require.Equal(t, "STATE      JOBS\ncompleted  1\nfailed     1\n", s.ok("", "ls", "--count", "--from", "2020-01-01T00:00:00Z"))
	require.Equal(t, map[string]any{"jobs": map[string]any{"failed": 1.0}, "looked": 2.0, "cut": false}, objects(t, s.ok("", "ls", "--count", "--state", "failed", "-o", "json"))[0])

	shown := s.ok("", "show", "h1", "b1")
	for _, said := range []string{"state    completed with code 200", `"text": "Ada"`, "✓ step   worker echo  done", `input    {"name":"Ada"}`, "step  done (waited ", "      in     \"Ada\"\n", "      out    \"Ada\"\n", "      error  business: no such customer\n", "state    failed with code 422", "no such customer", "✗ step   worker fail  failed, code 422"} {
		require.Contains(t, shown, said)
	}
	require.NotContains(t, shown, ",0,0")
	require.Contains(t, s.ok("", "show", "h1", "--digits"), "step      ,0,0     2 01 1 0 00 00000001  200   finalized")
	o := objects(t, s.ok("b1\n", "show", "-", "-o", "json"))
	require.Equal(t, map[string]any{"value": map[string]any{"name": "Ada"}}, o[0]["input"])
	require.Subset(t, o[0]["activities"].([]any)[0], map[string]any{
		"activity": "step", "state": "failed", "code": 422.0, "attempts": 1.0, "says": "finalized, 1 response",
	})
	require.Equal(t, "failed", o[0]["state"])
	require.EqualValues(t, 422, o[0]["code"])
	require.Len(t, o[0]["activities"], 2)
	s.fails(codeNotFound, "", "show", "h1", "none")

	path := filepath.Join(t.TempDir(), "e.jsonl")
	require.Empty(t, s.ok("", "export", "h1", "b1", "-o", path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(text), s.ok("h1\nb1\n", "export", "-"))
	require.Equal(t, 2, strings.Count(string(text), export.Format))
	s.fails(codeNotFound, "", "export", "none", "-o", filepath.Join(filepath.Dir(path), "none.jsonl"))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "an export that failed leaves no file")
}

// J7: an expired job leaves a tombstone, which is in nobody's way.
func TestExpiredJobs_J7(t *testing.T) {
	s := newSpace(t)
	s.deploy("hello", "1", "echo", `"${ start.output.name }"`)
	path := filepath.Join(t.TempDir(), "brief.yaml")
	require.NoError(t, os.WriteFile(path, []byte("flow: brief\nversion: \"1\"\nexpire: 1s\nactivities: {start: {type: trigger}}\n"), 0o644))
	s.ok("", "deploy", path)
	s.ok("", "start", "hello", "far-away", "--input", `{"name":"Ada"}`)
	s.ok("", "start", "brief", "gone")
	s.ok("", "start", "hello", "here", "--input", `{"name":"Ada"}`)
	s.ok("", "wait", "gone", "here")
	st, err := postgres.Open(t.Context(), postgres.Config{DSN: s.env["QUIPU_POSTGRES"], Space: "default"})
	require.NoError(t, err)
	defer st.Close()
	require.Eventually(t, func() bool { // what retention does once a minute
		_, err := st.Expire(t.Context(), 100)
		require.NoError(t, err)
		return s.ok("", "ls", "--state", "expired", "-k") == "gone\n"
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, "here\nfar-away\n", s.ok("", "ls", "-k"))
	for line := range strings.Lines(s.ok("", "ls", "--limit", "2")) {
		require.Equal(t, len("far-away  "), max(strings.Index(line, "hello"), strings.Index(line, "FLOW")), "one table: %s", line)
	}
	require.Equal(t, "here\n", s.ok("", "ls", "-k", "--limit", "1"))
	require.Contains(t, s.fails(codeNotFound, "", "show", "gone").Err, "has expired")

	path = filepath.Join(t.TempDir(), "e.jsonl")
	require.Contains(t, s.fails(codeNotFound, "", "export", "gone", "here", "-o", path).Err, "has expired")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), export.Format), "the others are exported")
}

// dead waits for that many open dead letters and returns their ids by job.
func (s *space) dead(n int) map[string]string {
	s.t.Helper()
	ids := map[string]string{}
	require.Eventually(s.t, func() bool {
		clear(ids)
		for _, o := range objects(s.t, s.ok("", "dead", "ls", "-o", "json")) {
			ids[fmt.Sprint(o["key"])] = fmt.Sprint(o["id"])
		}
		return len(ids) == n
	}, time.Minute, 20*time.Millisecond, "%d dead letters", n)
	return ids
}

// TestDroppedDeadLettersAreCounted: who lists dead letters learns how many of strangers were dropped (S15).
func TestDroppedDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	s := &space{t: t, env: map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t), "QUIPU_SPACE": "flooded"}}
	s.ok("", "migrate")
	require.NotContains(t, s.do("", "dead", "ls").Err, "dropped")
	admin, err := pgx.Connect(t.Context(), s.env["QUIPU_POSTGRES"])
	require.NoError(t, err)
	defer func() { _ = admin.Close(t.Context()) }()
	_, err = admin.Exec(t.Context(), "UPDATE quipu_flooded.space SET dropped = 4000")
	require.NoError(t, err)
	require.Contains(t, s.do("", "dead", "ls").Err, "4000 older dead letters were dropped: only the newest 1000 ")
}

// TestDeadLetters_E10: retry, resolve and fail, each once.
func TestDeadLetters_E10(t *testing.T) {
	s := newSpace(t)
	s.deploy("parks", "1", "cut", `{onretry: "done at last"}`)
	require.Empty(t, s.ok("", "dead", "ls"))
	for _, c := range []struct {
		said string
		args []string
	}{
		{"no dead letters\n", []string{"dead", "ls"}},
		{"", []string{"dead", "ls", "-o", "json"}},
		{"", []string{"dead", "ls", "--ids"}},
		{"no jobs\n", []string{"ls", "--prefix", "nothing"}},
		{"", []string{"ls", "--prefix", "nothing", "-o", "json"}},
		{"", []string{"ls", "--prefix", "nothing", "--keys"}},
	} {
		r := s.do("", c.args...)
		require.Empty(t, r.Out)
		require.Equal(t, c.said, r.Err, c.args)
	}
	for _, key := range []string{"retried", "resolved", "failed"} {
		s.ok("", "start", "parks", key, "--input", `{"name":"Ada"}`)
	}
	ids := s.dead(3)
	require.Contains(t, s.ok("", "dead", "ls"), "DEAD  JOB")
	require.Equal(t, ids["failed"]+"\n", s.ok("", "dead", "ls", "--ids", "--prefix", "fa", "--from", "1h", "--reason", "parked", "--topic", "cut", "--flow", "parks"))
	require.Empty(t, s.ok("", "dead", "ls", "--ids", "--to", "1h"))
	require.Contains(t, s.ok("", "show", "resolved"), "held: parked; see dead letters")
	s.why("resolved", "step has waited for a person for ", "dead letter "+ids["resolved"]+" (parked): ", "    quipu dead retry "+ids["resolved"]+"\n")

	require.Contains(t, s.ok(ids["resolved"]+"\n", "dead", "resolve", "-", "--result", `"charged"`, "--reason", "seen in the books"), "resolved")
	require.Equal(t, "resolved  completed  {\"text\":\"charged\"}\n", s.ok("", "wait", "resolved", "--timeout", "1m"))

	s.ok("", "dead", "fail", ids["failed"], "--code", "502", "--message", "it is lost", "--who", "grace")
	require.Contains(t, s.fails(codeEnded, "", "wait", "failed", "--timeout", "1m").Out, "it is lost")

	o := objects(t, s.ok("", "dead", "retry", ids["retried"], "-o", "json"))
	require.Equal(t, "retried", o[0]["state"])
	require.Equal(t, "retried  completed  {\"text\":\"done at last\"}\n", s.ok("", "wait", "retried", "--timeout", "1m"))
	require.Equal(t, "quipu dead retry: dead letter "+ids["resolved"]+": it is decided already\n", s.fails(codeStale, "", "dead", "retry", ids["resolved"]).Err)
	require.Equal(t, "quipu dead resolve: dead letter "+ids["retried"]+": it is decided already: retried\n", s.fails(codeStale, "", "dead", "resolve", ids["retried"]).Err)
	require.Contains(t, s.fails(codeNotFound, "", "dead", "retry", "999999", ids["resolved"]).Err, "dead letter 999999")

	require.Empty(t, s.ok("", "dead", "ls"))
	states := map[any]any{}
	for _, o := range objects(t, s.ok("", "dead", "ls", "--all", "-o", "json")) {
		states[o["key"]] = o["state"]
	}
	require.Equal(t, map[any]any{"retried": "retried", "resolved": "resolved", "failed": "failed"}, states)
	require.Equal(t, journal.Operator{Action: "answer", Who: "ada", Reason: "seen in the books", Login: "quipu"}, s.operator("resolved"))
	require.Equal(t, "grace", s.operator("failed").Who)
}

// operator returns the decision in the job's journal.
func (s *space) operator(key string) journal.Operator {
	s.t.Helper()
	rt, err := quipu.Open(s.t.Context(), quipu.Config{Postgres: s.env["QUIPU_POSTGRES"], NoMigrate: true})
	require.NoError(s.t, err)
	defer rt.Close()
	job, err := rt.Find(s.t.Context(), key)
	require.NoError(s.t, err)
	for e, err := range rt.Journal(s.t.Context(), job) {
		require.NoError(s.t, err)
		if e.Operator != nil && e.Kind == journal.KindOperator {
			return *e.Operator
		}
	}
	s.t.Fatalf("the journal of %s tells of no operator", key)
	return journal.Operator{}
}

// TestSpaceIsMissing: only migrate makes a space; a typo is answered with the spaces that there are.
func TestSpaceIsMissing(t *testing.T) {
	t.Parallel()
	s := &space{t: t, env: map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t)}}
	flow := filepath.Join(t.TempDir(), "hello.yaml")
	require.NoError(t, os.WriteFile(flow, []byte("flow: hello\nversion: \"1\"\nactivities: {start: {type: trigger}}\n"), 0o644))
	require.Equal(t, "quipu ls: the database has no space default: it has none; `quipu migrate --space default` makes it\n", s.fails(cli.CodeFailed, "", "ls").Err)
	s.ok("", "migrate", "--space", "shop")
	for _, args := range [][]string{{"deploy", flow}, {"ls"}, {"start", "hello", "k"}, {"why", "k"}} {
		r := s.fails(cli.CodeFailed, "", append(args, "--space", "shpo")...)
		require.Contains(t, r.Err, "the database has no space shpo: it has shop; `quipu migrate --space shpo` makes it\n")
	}
	s.ok("", "deploy", flow, "--space", "shop")
}

// W11: the space keeps its default for how long closed jobs are kept until it is changed.
func TestMigrateExpire(t *testing.T) {
	t.Parallel()
	env := map[string]string{"QUIPU_POSTGRES": devtest.Postgres(t), "QUIPU_SPACE": "expire"}
	for _, x := range [][2]string{{"", "720h"}, {"90m", "1h30m"}, {"", "1h30m"}, {"never", "for good"}, {"", "for good"}, {"87600h", "87600h"}} {
		args := []string{"migrate"}
		if x[0] != "" {
			args = append(args, "--expire", x[0])
		}
		r := clitest.Do(t, run, env, "", args...)
		require.Zero(t, r.Code, r.Err)
		require.Contains(t, r.Out, "kept "+x[1]+"\n")
	}
	for _, bad := range []string{"0", "0s", "1ms", "87601h", "always", "-1h"} {
		r := clitest.Do(t, run, env, "", "migrate", "--expire", bad)
		require.Equal(t, cli.CodeUsage, r.Code, bad)
		require.Contains(t, r.Err, "or never", bad)
	}
}
