package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// TestYAML shows what YAML says in JSON, or why it is refused. "\t", "\r" and the like stand for
// their characters in the sources of the command escaped.
func TestYAML(t *testing.T) {
	t.Parallel()
	datadriven.RunTest(t, "testdata/yaml.txt", func(t *testing.T, d *datadriven.TestData) string {
		src := d.Input
		if d.Cmd == "escaped" {
			require.NoError(t, json.Unmarshal([]byte(`"`+strings.ReplaceAll(src, `"`, `\"`)+`"`), &src))
		}
		said, err := flow.ReadYAML([]byte(src))
		if err != nil {
			return err.Error() + "\n"
		}
		return string(said) + "\n"
	})
}

// requirePlain compares a text without quotes with the same text as JSON: both have the same value,
// or YAML has a fault. What is no JSON is that text, or a fault.
func requirePlain(t require.TestingT, text string) {
	if text == "" || text == "-" || text == "..." || strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "---") {
		return // no scalar
	}
	for _, form := range []string{"%s", "[%s]", "a: %s", "- %s", "{a: %s}"} {
		said, err := flow.ReadYAML(fmt.Appendf(nil, form, text))
		if err != nil {
			require.ErrorAs(t, err, new(flow.Faults))
			continue
		}
		value, refused := canonical.Payload([]byte(text))
		if refused != nil {
			value = canonical.AppendString(nil, text)
		}
		want := strings.Replace(map[string]string{
			"%s": "#", "[%s]": "[#]", "a: %s": `{"a":#}`, "- %s": "[#]", "{a: %s}": `{"a":#}`,
		}[form], "#", string(value), 1)
		require.Equal(t, want, string(said), "%q as %s", text, form)
	}
}

// A number, a boolean or null means in YAML what it means in JSON.
func TestPlainScalarMeansWhatItMeansInJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1e6", "18446744073709551616", "1e-6", "1e3", "-0", "0.10", "1E+2", "-1.5e-3", "100000000000000000000000001", "true", "false", "null",
	} {
		said, err := flow.ReadYAML([]byte("a: " + text))
		require.NoError(t, err)
		value, err := canonical.Payload([]byte(text))
		require.NoError(t, err)
		require.Equal(t, `{"a":`+string(value)+`}`, string(said))
		_, err = flow.ReadYAML([]byte(text + ": a"))
		require.ErrorContains(t, err, "a key must be a string; quote it")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+.]?[0-9xobe_.+-]{1,12}(:[0-9]{2})?|[a-zA-Z~.]{1,5}|[0-9]{300}(e[0-9]{1,4})?`).Draw(t, "text")
		requirePlain(t, strings.Repeat(text, rapid.SampledFrom([]int{1, 1, 4}).Draw(t, "times")))
	})
}

// FuzzPlain does the same with any text that YAML reads as one scalar.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"1e6", "0x10", "1_000", ".inf", "~", "yes", "10:30", "2026-01-01", "+1", "0.1.2", "<<", "=", "-", "1e99999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text != strings.TrimSpace(text) || strings.ContainsAny(text, "\"'[]{},#&*!|>%@`?:\r\n\t\u0085") ||
			!json.Valid(canonical.AppendString(nil, text)) {
			return
		}
		requirePlain(t, strings.ToValidUTF8(text, ""))
	})
}

// value draws a JSON value.
func value(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	text := func() string { return strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", "") }
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][-+]?[0-9]{1,2})?`).Draw(t, "number"))
	case 3:
		return text()
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			list = append(list, value(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		object[text()] = value(t, depth-1)
	}
	return object
}

// block writes a value as YAML without brackets, but for what is empty.
func block(dst *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			dst.WriteString("\n" + indent + "- # item")
			block(dst, item, indent+"  ")
		}
		if len(v) > 0 {
			return
		}
	case map[string]any:
		for key, member := range v {
			quoted, _ := json.Marshal(key)
			dst.WriteString("\n" + indent + string(quoted) + " :")
			block(dst, member, indent+" ")
		}
		if len(v) > 0 {
			return
		}
	}
	text, _ := json.Marshal(v)
	dst.WriteString("\n" + indent + " " + string(text))
}

// What is JSON is YAML with the same value, on one line, indented, and without brackets.
func TestJSONIsYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := value(t, 4)
		text, err := json.Marshal(v)
		require.NoError(t, err)
		want, err := canonical.Payload(text)
		require.NoError(t, err)
		indented, err := json.MarshalIndent(v, "", "\t")
		require.NoError(t, err)
		var blocks strings.Builder
		block(&blocks, v, "")
		for _, src := range []string{
			string(text), "a:\n " + strings.ReplaceAll(string(text), "\n", " "), strings.ReplaceAll(string(indented), "\t", " "),
			"---" + blocks.String(),
		} {
			said, err := flow.ReadYAML([]byte(src))
			require.NoError(t, err, src)
			if strings.HasPrefix(src, "a:") {
				said = said[len(`{"a":`) : len(said)-1]
			}
			require.Equal(t, string(want), string(said), src)
		}
	})
}

// FuzzYAML: any source is read in a value or faults, and as JSON it has that value too.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"a: |2\n   b\n\n c", "- &x {a: 1}\n- *x", "a:\n- b\n-\n  c: 'd''e'\n", "\"a\\\n b\": >-\n c\n\n  d", "[a: b, {c}, ]", "--- # x\n...\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		src = []byte(strings.ToValidUTF8(string(src), ""))
		said, err := flow.ReadYAML(src)
		if err != nil {
			require.ErrorAs(t, err, new(flow.Faults))
			return
		}
		again, err := flow.ReadYAML(said)
		require.NoError(t, err)
		require.Equal(t, string(said), string(again))
		if as, err := canonical.Payload(src); err == nil {
			require.Equal(t, string(as), string(said))
		}
	})
}
