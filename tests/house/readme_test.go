package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blocks are the fenced blocks of a language in a document.
func blocks(document, language string) (out []string) {
	for rest := document; ; {
		_, after, ok := strings.Cut(rest, "```"+language+"\n")
		if !ok {
			return out
		}
		block, next, ok := strings.Cut(after, "```")
		if !ok {
			return out
		}
		out, rest = append(out, block), next
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(content)
}

// The Go of these documents stands in files that run it, word for word.
func TestReadmeCodeIsCodeThatRuns(t *testing.T) {
	t.Parallel()
	for document, example := range map[string]string{
		"README.md": "example_test.go", "docs/functions.md": "workers/example_test.go", "docs/testing.md": "quiputest/docs_test.go",
	} {
		code := blocks(read(t, document), "go")
		require.NotEmpty(t, code)
		for _, block := range code {
			require.Contains(t, read(t, example), block)
		}
	}
}

var makeTarget = regexp.MustCompile(`\bmake ([a-z]+)\b`)

// Every `make …` in a document's shell blocks and code spans is a target.
func TestDocumentedTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := "\n" + read(t, "Makefile")
	walk(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".md") {
			return
		}
		text := string(content)
		for _, block := range append(blocks(text, "sh"), spans(text)...) {
			for _, m := range makeTarget.FindAllStringSubmatch(block, -1) {
				require.Contains(t, makefile, "\n"+m[1]+":", "%s names it", name)
			}
		}
	})
}

func spans(text string) (out []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			out = append(out, part)
		}
	}
	return out
}

var (
	link   = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	fenced = regexp.MustCompile("(?s)```.*?```")
)

// deadLinks are the relative links of a document to what is not there: a file, or a heading of
// another document or of its own. source gives the text of a file, or says that it is not there.
func deadLinks(name, text string, source func(string) (string, bool)) (broken []string) {
	for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		target := path.Join(path.Dir(name), m[1])
		if m[1] == "" {
			target = name
		}
		there, ok := source(target)
		switch {
		case !ok:
			broken = append(broken, fmt.Sprintf("%s links to %s, which is not there", name, target))
		case m[2] != "" && strings.HasSuffix(target, ".md") && !anchors(there)[m[2]]:
			broken = append(broken, fmt.Sprintf("%s links to %s#%s, and there is no such heading", name, target, m[2]))
		}
	}
	return broken
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	headingLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names under which the headings of a document can be linked to: in small letters,
// with - for a blank, without other signs.
func anchors(text string) map[string]bool {
	out, seen := map[string]bool{}, map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		title := strings.ToLower(headingLink.ReplaceAllString(strings.TrimSpace(m[1]), "$1"))
		anchor := strings.ReplaceAll(noAnchor.ReplaceAllString(title, ""), " ", "-")
		if n := seen[anchor]; n > 0 { // a title that stands twice
			out[fmt.Sprintf("%s-%d", anchor, n)] = true
		}
		seen[anchor]++
		out[anchor] = true
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all, err := contents()
	require.NoError(t, err)
	source := func(name string) (string, bool) {
		if text, ok := all[name]; ok {
			return string(text), true
		}
		_, err := os.Stat(filepath.Join(root, name))
		return "", err == nil
	}
	var broken []string
	walk(t, func(name string, content []byte) {
		if strings.HasSuffix(name, ".md") {
			broken = append(broken, deadLinks(name, string(content), source)...)
		}
	})
	none(t, broken, "links within the repository")

	known := func(name string) (string, bool) {
		return "# A b\n## `c`, d!\n## A b\n```sh\n# no\n```\n", name == "z.md" || name == "docs/x.md"
	}
	good := "[a](https://x) [b](../z.md#a-b) [c](#c-d) [d](../z.md#a-b-1)\n```\nf[x](y)\n```\n"
	require.Empty(t, deadLinks("docs/x.md", good, known))
	for _, bad := range []string{"[a](y.md)", "[a](../z.md#d)", "[a](#no)"} {
		require.Len(t, deadLinks("docs/x.md", good+bad, known), 1, bad)
	}
}

var (
	rule   = regexp.MustCompile(`\b([CJVETLIKFP])([1-9][0-9]?)\b`)
	ranges = regexp.MustCompile(`\b([CJVETLIKFP])([1-9][0-9]?)–(?:[CJVETLIKFP])?([1-9][0-9]?)\b`)
)

// cited are the rule ids in a text, ranges such as C1–C3 spelled out.
func cited(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range rule.FindAllString(text, -1) {
		out[m] = true
	}
	for _, m := range ranges.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(m[2]) // digits, by the pattern
		to, _ := strconv.Atoi(m[3])
		for n := from; n <= to; n++ {
			out[m[1]+strconv.Itoa(n)] = true
		}
	}
	return out
}

// A rule that a comment or a mutant cites is one that docs/rules.md states.
func TestCitedRulesAreStated(t *testing.T) {
	t.Parallel()
	stated := cited(read(t, "docs/rules.md"))
	var broken []string
	for _, f := range sources(t) {
		for _, group := range f.tree.Comments {
			for id := range cited(group.Text()) {
				if !stated[id] {
					broken = append(broken, fmt.Sprintf("%s:%d: %s", f.path, f.line(group.Pos()), id))
				}
			}
		}
	}
	walk(t, func(name string, content []byte) {
		guard, _, _ := strings.Cut(string(content), "\n")
		if path.Ext(name) == ".mutant" {
			for id := range cited(guard) {
				if !stated[id] {
					broken = append(broken, fmt.Sprintf("%s: %s", name, id))
				}
			}
		}
	})
	none(t, broken, "rules that docs/rules.md does not state")
	require.Equal(t, map[string]bool{"C1": true, "C2": true, "C3": true, "J12": true}, cited("C1–C3, J12; C0 and XC4"))
}
