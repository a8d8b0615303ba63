package api_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/engine"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/internal/work"
)

// The variables of the worker command configure a program's own process. An error names the bad
// variable.
func TestConfigFromEnv(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dev.json"), []byte(`{"postgres":"postgres://dev","nats":"nats://dev","space":"shop","pid":1}`), 0o600))
	t.Setenv("QUIPU_DEV", dir)
	t.Setenv("QUIPU_ROLES", "engine, workers")
	t.Setenv("QUIPU_LEASE", "5s")
	t.Setenv("QUIPU_HOT_MIB", "0")
	t.Setenv("QUIPU_MAX_BATCH", "100")
	t.Setenv("QUIPU_MAX_CONNS", "20")
	t.Setenv("QUIPU_NO_MIGRATE", "true")
	t.Setenv("QUIPU_NATS_WAIT", "-1s")
	t.Setenv("QUIPU_WAIT_LOOK", "2s")
	t.Setenv("QUIPU_BUILD", "v7")
	want := quipu.Config{
		Postgres: "postgres://dev", NATS: "nats://dev", Space: "shop", Roles: []quipu.Role{quipu.RoleEngine, quipu.RoleWorkers},
		Lease: 5 * time.Second, HotBytes: -1, MaxBatch: 100,
		MaxConns: 20, NoMigrate: true, NATSWait: -time.Second, WaitLook: 2 * time.Second, Build: "v7",
	}
	got, err := quipu.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, want, got)
	t.Setenv("QUIPU_POSTGRES", "postgres://env")
	t.Setenv("QUIPU_HOT_MIB", "128")
	got, err = quipu.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, "postgres://env", got.Postgres)
	require.Empty(t, got.NATS, "a database that is named has nothing to do with the directory")
	require.Equal(t, 128<<20, got.HotBytes)
	t.Setenv("QUIPU_LEASE", "5")
	t.Setenv("QUIPU_LANES", "many")
	_, err = quipu.ConfigFromEnv()
	require.ErrorIs(t, err, quipu.ErrConfig)
	require.ErrorContains(t, err, "QUIPU_LEASE=5:")
	require.ErrorContains(t, err, "QUIPU_LANES=many:")
	_, err = quipu.ConfigFromDev(t.TempDir())
	require.ErrorIs(t, err, quipu.ErrConfig)
	require.ErrorContains(t, err, "start one with `worker dev --data ")
}

// S5: the options of NATS come from the environment, too; and a fault names its field before
// anything is connected.
func TestS5NATSOptions(t *testing.T) {
	for name, value := range map[string]string{
		"CREDS": "a.creds", "NKEY": "b.nk", "CA": "ca.pem", "CERT": "c.pem", "KEY": "c.key", "DOMAIN": "hub", "PREFIX": "acme",
		"REPLICAS": "3", "MAX_MIB": "2048", "MAX_AGE": "36h", "CLUSTER": "east", "TAGS": "ssd,eu",
	} {
		t.Setenv("QUIPU_NATS_"+name, value)
	}
	got, err := quipu.ConfigFromEnv()
	require.NoError(t, err)
	require.Equal(t, quipu.NATSOptions{
		Credentials: "a.creds", NKeySeed: "b.nk", CA: "ca.pem", Cert: "c.pem", Key: "c.key", Domain: "hub", Prefix: "acme",
		Replicas: 3, MaxBytes: 2 << 30, MaxAge: 36 * time.Hour, PlacementCluster: "east", PlacementTags: []string{"ssd", "eu"},
	}, got.NATSOptions)
	t.Setenv("QUIPU_NATS_MAX_MIB", "9999999999999")
	_, err = quipu.ConfigFromEnv()
	require.ErrorContains(t, err, "QUIPU_NATS_MAX_MIB=9999999999999")

	for want, o := range map[string]quipu.NATSOptions{
		"Config.NATSOptions.Replicas is 6, allowed are 1 to 5":                  {Replicas: 6},
		"Config.NATSOptions.MaxAge is 1s: at least 1h0m0s":                      {MaxAge: time.Second},
		"Config.NATSOptions.MaxBytes is 1, allowed are 1048576":                 {MaxBytes: 1},
		"Config.NATSOptions.Prefix is \"Q\": a lower-case letter":               {Prefix: "Q"},
		"Config.NATSOptions.CA /none cannot be used: open /none: no such file":  {CA: "/none"},
		"Config.NATSOptions.Cert is missing: there is a key":                    {Key: "/none"},
		"Config.NATSOptions.Credentials /none cannot be used: open /none: no s": {Credentials: "/none"},
	} {
		_, err := quipu.Open(t.Context(), quipu.Config{Postgres: "postgres://127.0.0.1:1/x", NATS: "nats://127.0.0.1:1", NATSOptions: o})
		require.ErrorIs(t, err, quipu.ErrConfig, want)
		require.ErrorContains(t, err, want)
	}
}

// root is the directory of the root package.
const root = "../../"

var update = flag.Bool("update", false, "write the tables of docs/config.md instead of comparing them")

var (
	defaultOf   = regexp.MustCompile(`Defaults? to ([\w.]+\(\)|[^.,;:]+)`)
	defaultOnly = regexp.MustCompile(` ?Defaults? to ([\w.]+\(\)|[^.,;:]+)\.`)
	required    = regexp.MustCompile(` ?Required\.`)
	ruleIDs     = regexp.MustCompile(` \(([A-Z][0-9]+|[0-9]\.[0-9]+)(, [A-Z][0-9]+)*\)`)
	flagRow     = regexp.MustCompile("(?m)^\\| `(--[a-z-]+)[^|]*\\| `(QUIPU_[A-Z_]+)`")
)

// docs/config.md has every field of Config and NATSOptions: its variable and flag as they are
// read, its default, its range as it is checked, and its comment.
func TestConfigIsDocumented(t *testing.T) {
	sets := variables(t)
	page, err := os.ReadFile(root + "docs/config.md")
	require.NoError(t, err)
	for name, of := range map[string]reflect.Type{
		"Config": reflect.TypeFor[quipu.Config](), "NATSOptions": reflect.TypeFor[quipu.NATSOptions](),
	} {
		comments := fieldComments(t, name)
		var want strings.Builder
		want.WriteString("\n| field | variable, flag | default | range | |\n|---|---|---|---|---|\n")
		for i := range of.NumField() {
			field := of.Field(i).Name
			text := comments[field]
			require.NotEmpty(t, text, field)
			defaults := "required"
			if m := defaultOf.FindStringSubmatch(text); m != nil {
				defaults = strings.NewReplacer("DefaultSpace", quipu.DefaultSpace, "AllRoles", "all roles", `""`, "empty").Replace(m[1])
			} else {
				require.Contains(t, text, "Required.", "%s says no default", field)
			}
			fmt.Fprintf(&want, "| `%s` | %s | %s | %s | %s |\n", field, sets[field], defaults, rangeOf(field, of.Field(i).Type), meaning(field, text))
		}
		want.WriteString("\n")
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(string(page), begin)
		require.True(t, found, begin)
		got, after, found := strings.Cut(rest, end)
		require.True(t, found, end)
		page = []byte(before + begin + want.String() + end + after)
		if !*update {
			require.Equal(t, want.String(), got, "go test ./tests/api -run TestConfigIsDocumented -update writes it anew")
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(root+"docs/config.md", page, 0o644))
	}
}

// variables returns what sets each field in ConfigFromEnv, found by trying: its variable, and the
// flag of the command worker that has the same one.
func variables(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(root + "docs/cli.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), "<!-- worker -->")
	rest, _, _ = strings.Cut(rest, "### `worker dev`")
	flags := map[string]string{"QUIPU_MAX_CONNS": "", "QUIPU_NATS_WAIT": "", "QUIPU_WAIT_LOOK": "", "QUIPU_BUILD": ""}
	for _, m := range flagRow.FindAllStringSubmatch(rest, -1) {
		flags[m[2]] = ", `" + m[1] + "`"
	}
	sets := map[string]string{}
	for name, of := range flags {
		for _, value := range []string{"7", "7s", "true"} {
			t.Setenv(name, value)
			c, err := quipu.ConfigFromEnv()
			field := changed(reflect.ValueOf(c))
			if err == nil && field != "" {
				require.Empty(t, sets[field])
				sets[field] = "`" + name + "`" + of
				break
			}
		}
		t.Setenv(name, "")
	}
	return sets
}

// changed is the field that differs from the zero Config, or "".
func changed(v reflect.Value) string {
	for i := range v.NumField() {
		switch field := v.Field(i); {
		case field.IsZero():
		case field.Type() == reflect.TypeFor[quipu.NATSOptions]():
			return changed(field)
		default:
			return v.Type().Field(i).Name
		}
	}
	return ""
}

// fieldComments are the comments of the fields of a type of the package.
func fieldComments(t *testing.T, name string) map[string]string {
	t.Helper()
	out := map[string]string{}
	tree, err := parser.ParseFile(token.NewFileSet(), root+"config.go", nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			for _, id := range field.Names {
				out[id.Name] = strings.Join(strings.Fields(field.Doc.Text()), " ")
			}
		}
		return false
	})
	return out
}

// meaning is the comment of a field without what has a column of its own.
func meaning(field, comment string) string {
	if rest, ok := strings.CutPrefix(comment, field+" is "); ok {
		comment = strings.ToUpper(rest[:1]) + rest[1:]
	}
	for _, cut := range []*regexp.Regexp{defaultOnly, required, ruleIDs} {
		comment = cut.ReplaceAllString(comment, "")
	}
	return strings.ReplaceAll(strings.TrimSpace(comment), "|", "\\|")
}

// rangeOf is the range of a number or a time as the check of the field has it, found by trying;
// "" if there is none.
func rangeOf(field string, of reflect.Type) (text string) {
	defer func() {
		if recover() != nil { // the table of ranges does not have the field
			text = ""
		}
	}()
	check, show := func(n int) error { return engine.CheckNumber(field, n) }, strconv.Itoa
	if of == reflect.TypeFor[time.Duration]() {
		check = func(n int) error { return engine.CheckTime(field, time.Duration(n)) }
		show = func(n int) string { return time.Duration(n).String() }
	} else if of.Kind() != reflect.Int {
		return ""
	}
	within := 1
	for check(within) != nil {
		within *= 2
	}
	least := 1 + sort.Search(within, func(n int) bool { return check(n+1) == nil })
	most := within + sort.Search(math.MaxInt-within, func(n int) bool { return check(within+n) != nil }) - 1
	switch {
	case least == 1 && most >= math.MaxInt32:
		return "more than 0"
	case most >= math.MaxInt32 && of.Kind() == reflect.Int:
		return fmt.Sprintf("at least %s", show(least))
	}
	return fmt.Sprintf("%s to %s", show(least), show(most))
}

// The defaults that the comments say are those of the code.
func TestConfigCommentsSayTheDefaults(t *testing.T) {
	t.Parallel()
	comments := fieldComments(t, "Config")
	for field, want := range map[string]any{
		"Lanes": engine.DefaultLanes, "Concurrency": work.DefaultConcurrency, "Committers": engine.DefaultCommitters, "MaxBatch": store.MaxBatch,
		"HotBytes": strconv.Itoa(engine.DefaultHotBytes>>20) + "MiB",
		"Resend":   engine.DefaultResend, "Lease": engine.DefaultLease, "AckWait": engine.DefaultAckWait, "Drain": work.DefaultDrain,
		"WaitLook": engine.DefaultLook,
	} {
		m := defaultOf.FindStringSubmatch(comments[field])
		require.NotNil(t, m, field)
		require.Equal(t, fmt.Sprint(want), strings.ReplaceAll(m[1], " ", ""), field)
	}
}
