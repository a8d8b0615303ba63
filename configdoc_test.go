package quipu_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
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
	page, err := os.ReadFile("docs/config.md")
	require.NoError(t, err)
	for name, of := range map[string]reflect.Type{"Config": reflect.TypeFor[quipu.Config](), "NATSOptions": reflect.TypeFor[quipu.NATSOptions]()} {
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
			require.Equal(t, want.String(), got, "go test . -run TestConfigIsDocumented -update writes it anew")
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("docs/config.md", page, 0o644))
	}
}

// variables returns what sets each field in ConfigFromEnv, found by trying: its variable, and the
// flag of the command worker that has the same one.
func variables(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("docs/cli.md")
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
	for _, file := range []string{"config.go", "natsoptions.go"} {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
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
	}
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
		"Resend":   engine.DefaultResend, "Lease": engine.DefaultLease, "AckWait": engine.DefaultAckWait, "Drain": work.DefaultDrain, "WaitLook": engine.DefaultLook,
	} {
		m := defaultOf.FindStringSubmatch(comments[field])
		require.NotNil(t, m, field)
		require.Equal(t, fmt.Sprint(want), strings.ReplaceAll(m[1], " ", ""), field)
	}
}
