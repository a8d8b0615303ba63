package house

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	section   = regexp.MustCompile("(?m)^##+ `((?:worker|quipu)[a-z -]*)`$")
	flagOfRow = regexp.MustCompile("(?m)^\\| `(?:-[a-z], )?(--[a-z-]+)(?: [A-Z]+)?`")
	longFlag  = regexp.MustCompile(`^--[a-z][a-z-]*`)
	quoted    = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	parts     = regexp.MustCompile(`&&|\|\||[|;&]|\$\(`)
)

// commands are the commands of docs/cli.md and docs/verify.md with their flags. Those of quipu
// itself are flags of all its commands.
func commands(cli, verify string) map[string][]string {
	out := map[string][]string{"journal-verify": firsts(flagOfRow, verify)}
	at := section.FindAllStringSubmatchIndex(cli, -1)
	for i, m := range at {
		end := len(cli)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out[cli[m[2]:m[3]]] = firsts(flagOfRow, cli[m[1]:end])
	}
	for name := range out {
		if strings.HasPrefix(name, "quipu ") {
			out[name] = append(out[name], out["quipu"]...)
		}
	}
	return out
}

// misused are the commands in a text that there are not, and the flags that they do not have. A
// text is a line of a shell, or what stands between two backquotes.
func misused(text string, known map[string][]string) (broken []string) {
	text, _, _ = strings.Cut(quoted.ReplaceAllString(strings.ReplaceAll(text, "\\\n", " "), "x"), " #")
	for _, part := range parts.Split(text, -1) {
		words := strings.Fields(part)
		for len(words) > 0 && (strings.Contains(words[0], "=") || words[0] == "until") {
			words = words[1:]
		}
		if len(words) < 2 || !slices.Contains([]string{"worker", "quipu", "journal-verify"}, strings.TrimPrefix(words[0], "bin/")) {
			continue
		}
		words[0] = strings.TrimPrefix(words[0], "bin/")
		name := words[0]
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "-") {
				continue // a flag of quipu may stand before the command
			}
			if _, ok := known[name+" "+word]; ok {
				name += " " + word
			}
		}
		if name == "quipu" && !strings.HasPrefix(words[1], "-") {
			broken = append(broken, fmt.Sprintf("`%s`: there is no such command", strings.Join(words[:2], " ")))
			continue
		}
		for _, word := range words[1:] {
			if flag := longFlag.FindString(word); flag != "" && flag != "--help" && !slices.Contains(known[name], flag) {
				broken = append(broken, fmt.Sprintf("`%s` has no flag %s", name, flag))
			}
		}
	}
	return broken
}

// Every command in a document's shell blocks and code spans is there, with its flags.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	known := commands(read(t, "docs/cli.md"), read(t, "docs/verify.md"))
	require.Greater(t, len(known), 30, "%v", slices.Sorted(maps.Keys(known)))
	var broken []string
	walk(t, func(name string, content []byte) {
		if !strings.HasSuffix(name, ".md") {
			return
		}
		text := string(content)
		lines := spans(fenced.ReplaceAllString(text, ""))
		for _, block := range blocks(text, "sh") {
			lines = append(lines, strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n")...)
		}
		for _, line := range lines {
			for _, wrong := range misused(line, known) {
				broken = append(broken, name+": "+wrong)
			}
		}
	})
	none(t, broken, "commands in documents")
}

func TestCommandRuleFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	known := map[string][]string{
		"worker": {"--http"}, "quipu": {"--space"}, "quipu dead": {"--space"}, "quipu dead done": {"--space", "--result"}, "journal-verify": {"--dev"},
	}
	for text, wrong := range map[string]int{
		"quipu dead done 1 --result '--odd'": 0, "quipu --space shop dead done": 0, "worker --http x & quipu dead # --odd": 0,
		"until bin/quipu dead | grep x": 0, "quipu": 0, "the word quipu --odd": 0, "X=1 journal-verify --dev .quipu": 0,
		"quipu alive": 1, "bin/quipu dead --result x": 1, "worker --htp": 1, "echo x | quipu dead done --odd": 1,
	} {
		require.Len(t, misused(text, known), wrong, text)
	}
}
