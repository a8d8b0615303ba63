package house

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are the packages from the bottom up. A package stands in the layer of
// the longest prefix of its directory and may import what stands below it, and
// what is inside its own directory.
var layers = [][]string{
	{
		"internal/backoff", "internal/canonical", "internal/schedule", "internal/fault", "internal/edit",
		"internal/usercode", "internal/keyring",
	},
	{"journal", "flow"},
	{"collation", "view"},
	{"replay", "internal/inspect/spans"},
	{"internal/store", "telemetry/observer", "internal/wire", "internal/traffic"},
	{"internal/health"},
	{"internal/effect/port", "transport", "internal/explain", "internal/repair", "internal/archive", "api/access"},
	{"effects", "internal/early"},
	{"internal/effect"},
	{"internal/durable", "internal/session", "internal/work/port", "internal/inspect"},
	{"workers"},
	{"internal/engine", "internal/work"},
	{"journal/postgres", "internal/memstore", "transport/nats", "internal/membus", "internal/local", "telemetry"},
	{"internal/below", "internal/misfit", "internal/tokens"},
	{"internal/process"},
	{"."},
	{"internal/dev", "quiputest"},
	{"api", "internal/console"},
	{"internal/testkit"},
	{"cmd/internal", "examples"},
	{"cmd", "tests"},
}

// pure are the packages that know no context, clock, randomness, network, SQL
// or log; those inside their directories included, other layers excepted.
var pure = []string{
	"internal/backoff", "internal/canonical", "internal/schedule", "journal", "flow", "collation", "replay", "view",
	"internal/inspect/spans",
}

// careful are packages that are pure themselves and read the views of a port.
var careful = []string{"internal/explain", "internal/repair", "internal/health"}

// impure are the standard packages, with all below them, that pure ones do
// without. net/url only parses.
var impure = []string{"context", "crypto/rand", "database/sql", "log", "math/rand", "net", "os", "testing"}

// clock are the functions of package time that ask or wait for the clock.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// homes are the modules that only these directories import. Packages below
// tests look at databases and servers from outside, so they may.
var homes = []struct {
	module string
	in     []string
}{
	{"github.com/jackc/pgx", []string{"journal/postgres", "internal/testkit", "tests"}},
	{"github.com/nats-io/nats.go", []string{"transport/nats", "internal/dev", "internal/testkit", "tests"}},
	{"github.com/nats-io/nats-server", []string{"internal/dev", "internal/testkit", "tests"}},
	{"go.opentelemetry.io", []string{"telemetry", "internal/testkit", "tests"}},
	{"github.com/prometheus", []string{"telemetry", "internal/testkit", "tests"}},
	{"github.com/stretchr/testify", []string{"internal/testkit", "cmd/internal/cli/clitest", "tests"}},
}

// facadeTypes are what the root package takes from modules that are at home elsewhere: the type of
// an option, so that a caller hands over an embedded server's connection, and what the methods of a
// transaction take and return.
var facadeTypes = map[string][]string{
	"github.com/nats-io/nats.go":     {"InProcessConnProvider"},
	"github.com/jackc/pgx/v5":        {"Tx", "Rows", "Row", "Identifier", "CopyFromSource", "Batch"},
	"github.com/jackc/pgx/v5/pgconn": {"CommandTag"},
}

// within says that dir is prefix or lies below it. Only the root itself is
// within ".".
func within(dir, prefix string) bool {
	return dir == prefix || prefix != "." && strings.HasPrefix(dir, prefix+"/")
}

// layer is the index of the layer of dir, -1 for none, and the prefix that put
// it there.
func layer(dir string) (at int, prefix string) {
	at = -1
	for i, prefixes := range layers {
		for _, p := range prefixes {
			if within(dir, p) && len(p) > len(prefix) {
				at, prefix = i, p
			}
		}
	}
	return at, prefix
}

func isPure(dir string) bool {
	_, prefix := layer(dir)
	return slices.Contains(pure, prefix)
}

func imports(f *file) map[string]*ast.ImportSpec {
	out := map[string]*ast.ImportSpec{}
	for _, spec := range f.tree.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil {
			out[name] = spec
		}
	}
	return out
}

// upward are the imports of a file that do not go down.
func upward(f *file) (broken []string) {
	from, home := layer(f.dir())
	if from < 0 {
		return []string{f.path + ": its directory has no layer: give it one in imports_test.go"}
	}
	for name, spec := range imports(f) {
		if !within(name, module) {
			continue
		}
		dir := "."
		if name != module {
			dir = strings.TrimPrefix(name, module+"/")
		}
		to, _ := layer(dir)
		if to >= from && !(to == from && within(dir, home)) {
			broken = append(broken, fmt.Sprintf("%s:%d: %s imports %s, which stands above or beside it", f.path, f.line(spec.Pos()), f.dir(), dir))
		}
	}
	return broken
}

// unclean are the things that a pure package does without.
func unclean(f *file) (broken []string) {
	for name, spec := range imports(f) {
		for _, banned := range impure {
			if within(name, banned) && name != "net/url" {
				broken = append(broken, fmt.Sprintf("%s:%d: a pure package imports %s: make it an input", f.path, f.line(spec.Pos()), name))
			}
		}
	}
	for _, name := range clock {
		for _, line := range uses(f, "time", name) {
			broken = append(broken, fmt.Sprintf("%s:%d: a pure package calls time.%s: make the time an input", f.path, line, name))
		}
	}
	return broken
}

// version is the end of an import path that is no name of its package.
var version = regexp.MustCompile(`/v[0-9]+$`)

// uses are the lines on which a file names pkg.name.
func uses(f *file, pkg, name string) (lines []int) {
	local := path.Base(version.ReplaceAllString(pkg, ""))
	spec := imports(f)[pkg]
	if spec == nil {
		return nil
	}
	if spec.Name != nil {
		local = spec.Name.Name
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && (name == "" || s.Sel.Name == name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == local {
				lines = append(lines, f.line(s.Pos()))
			}
		}
		return true
	})
	return lines
}

// strayed are imports of modules outside their homes.
func strayed(f *file) (broken []string) {
	for name, spec := range imports(f) {
		for _, h := range homes {
			if !within(name, h.module) || slices.ContainsFunc(h.in, func(p string) bool { return within(f.dir(), p) }) {
				continue
			}
			if f.dir() == "." && onlyFacadeTypes(f, name) {
				continue
			}
			broken = append(broken, fmt.Sprintf("%s:%d: %s belongs to %s", f.path, f.line(spec.Pos()), name, strings.Join(h.in, ", ")))
		}
	}
	return broken
}

func onlyFacadeTypes(f *file, pkg string) bool {
	if spec := imports(f)[pkg]; spec.Name != nil && spec.Name.Name == "." {
		return false
	}
	allowed := 0
	for _, name := range facadeTypes[pkg] {
		allowed += len(uses(f, pkg, name))
	}
	all := len(uses(f, pkg, ""))
	return all > 0 && all == allowed
}

func each(t *testing.T, check func(*file) []string) (broken []string) {
	t.Helper()
	for _, f := range sources(t) {
		if !f.test() {
			broken = append(broken, check(f)...)
		}
	}
	return broken
}

func TestImportsGoDown(t *testing.T) {
	t.Parallel()
	none(t, each(t, upward), "imports only go down (ARCHITECTURE.md)")
}

func TestPurePackagesArePure(t *testing.T) {
	t.Parallel()
	none(t, each(t, func(f *file) []string {
		if !isPure(f.dir()) && !slices.Contains(careful, f.dir()) {
			return nil
		}
		return unclean(f)
	}), "pure packages know no context, clock, randomness, network, SQL, files or log")
}

func TestModulesStayAtHome(t *testing.T) {
	t.Parallel()
	none(t, each(t, strayed), "a module is imported where it is wrapped")
}

// The verifier shares no code with what it verifies (2.5), directly or not.
func TestVerifierNeverImportsTheEngine(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "./cmd/journal-verify", "./replay") {
		require.NotContains(t, p.Deps, module+"/internal/engine", p.ImportPath)
		require.NotContains(t, p.Deps, module+"/workers", p.ImportPath)
		require.NotContains(t, p.Deps, module+"/internal/work", p.ImportPath)
		require.NotContains(t, p.Deps, module+"/internal/effect", p.ImportPath)
		require.NotContains(t, p.Deps, module, p.ImportPath)
	}
}

// readers derive ids by the code of package journal. The runtime makes them by that of collation,
// so a mistake of one is no mistake of the other (W12).
var readers = []string{"replay", "internal/inspect/spans"}

// derivers are the functions of collation that make ids.
var derivers = []string{
	"NewJobID", "Leg1GUID", "JoinGUID", "RequestGUID", "ResponseGUID", "OperatorGUID", "SentGUID", "WakeUpGUID", "SignalledGUID", "TimeoutGUID",
	"CycleGUID", "ChildID", "NamedChild", "PauseGUID", "UndoID", "OutcomeGUID", "InterruptGUID",
}

// borrowed are the ids that a reader has derived by the runtime's code.
func borrowed(f *file) (broken []string) {
	if _, prefix := layer(f.dir()); !slices.Contains(readers, prefix) {
		return nil
	}
	for _, name := range derivers {
		for _, line := range uses(f, module+"/collation", name) {
			broken = append(broken, fmt.Sprintf("%s:%d: a reader derives by collation.%s", f.path, line, name))
		}
	}
	return broken
}

func TestReadersDeriveByThemselves(t *testing.T) {
	t.Parallel()
	none(t, each(t, borrowed), "readers derive ids by package journal (W12)")
}

// What a pure package drags in from this module is pure as well.
func TestPurePackagesDependOnPureOnes(t *testing.T) {
	t.Parallel()
	patterns := make([]string, len(pure))
	for i, p := range pure {
		patterns[i] = "./" + p
	}
	for _, p := range list(t, patterns...) {
		for _, dep := range p.Deps {
			if dir, ours := strings.CutPrefix(dep, module+"/"); ours {
				require.True(t, isPure(dir), "%s depends on %s", p.ImportPath, dir)
			}
		}
	}
}

func TestImportRulesFindWhatBreaksThem(t *testing.T) {
	t.Parallel()
	source := func(dir, body string) *file { return parse(t, dir, "package x\n"+body) }
	q := `import "` + module
	require.Len(t, upward(source("collation/x.go", q+`/internal/engine"`)), 1)
	require.Len(t, upward(source("collation/x.go", q+`"`)), 1)
	require.Len(t, upward(source("internal/engine/x.go", q+`/internal/work"`)), 1)
	require.Len(t, upward(source("journal/x.go", q+`/journal/postgres"`)), 1)
	require.Len(t, upward(source("nowhere/x.go", "")), 1)
	require.Empty(t, upward(source("internal/engine/x.go", q+`/collation"`)))
	require.Empty(t, upward(source("flow/x.go", q+`/flow/internal/expr"`)))
	require.Empty(t, upward(source("journal/postgres/x.go", q+`/journal"`)))

	require.True(t, isPure("flow/internal/expr"))
	require.False(t, isPure("journal/postgres"))
	require.Len(t, unclean(source("flow/x.go", `import ("context"; "log/slog"; "net/http"; "net/url")`)), 3)
	require.Len(t, unclean(source("flow/x.go", "import clock \"time\"\nvar now = clock.Now\nvar d clock.Duration")), 1)

	require.Len(t, borrowed(source("replay/x.go", q+"/collation\"\nvar f = collation.UndoID")), 1)
	require.Empty(t, borrowed(source("internal/engine/x.go", q+"/collation\"\nvar f = collation.UndoID")))

	require.Len(t, strayed(source("internal/engine/x.go", `import "github.com/jackc/pgx/v5/pgconn"`)), 1)
	require.Empty(t, strayed(source("journal/postgres/x.go", `import "github.com/jackc/pgx/v5"`)))
	nats := `import n "github.com/nats-io/nats.go"` + "\n"
	require.Empty(t, strayed(source("x.go", nats+"type c struct { p n.InProcessConnProvider }")))
	require.Len(t, strayed(source("x.go", nats+"var c = n.Connect")), 1)
	pgx := `import "github.com/jackc/pgx/v5"` + "\n"
	require.Empty(t, strayed(source("x.go", pgx+"type tx = pgx.Tx")))
	require.Len(t, strayed(source("x.go", pgx+"type tx = pgx.Tx\nvar c = pgx.Connect")), 1)
}
