package expr_test

import (
	"strings"
	"testing"

	"cel.dev/cel-go/parser/gen"
	"github.com/antlr4-go/antlr/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quipu-journal/quipu/flow/internal/expr"
)

// errorCounter counts what CEL's lexer does not know.
type errorCounter struct {
	*antlr.DefaultErrorListener
	errors int
}

func (c *errorCounter) SyntaxError(antlr.Recognizer, any, int, int, string, antlr.RecognitionException) {
	c.errors++
}

// lexed is where CEL's own lexer finds the brace that closes an expression, and what it takes for
// code: the text with spaces instead of strings, comments and quoted names. ok is false for a text
// that it does not know.
func lexed(text string) (end int, code string, ok bool) {
	lexer := gen.NewCELLexer(antlr.NewInputStream(text))
	errors := &errorCounter{DefaultErrorListener: antlr.NewDefaultErrorListener()}
	lexer.RemoveErrorListeners()
	lexer.AddErrorListener(errors)
	runes := []rune(text)
	end = -1
	depth := 0
	for t := lexer.NextToken(); t.GetTokenType() != antlr.TokenEOF; t = lexer.NextToken() {
		switch t.GetTokenType() {
		case gen.CELLexerLBRACE:
			depth++
		case gen.CELLexerRBRACE:
			if depth--; depth < 0 && end < 0 {
				end = len(string(runes[:t.GetStart()]))
			}
		case gen.CELLexerSTRING, gen.CELLexerBYTES, gen.CELLexerCOMMENT, gen.CELLexerESC_IDENTIFIER:
			code += strings.Repeat(" ", len(string(runes[t.GetStart():t.GetStop()+1])))
			continue
		}
		code += string(runes[t.GetStart() : t.GetStop()+1])
	}
	return end, code, errors.errors == 0
}

// requireLexed compares this package's reading of a text with that of CEL's lexer.
func requireLexed(t require.TestingT, text string) bool {
	end, code, ok := lexed(text)
	if !ok {
		return false
	}
	require.Equal(t, end, expr.End(text, 0), "%q", text)
	// Code keeps the quotes at both ends of a string.
	own := expr.Code(text)
	require.Len(t, own, len(text))
	for i := range own {
		if own[i] != code[i] {
			require.Contains(t, "\"'", own[i:i+1], "%q: %q, not %q", text, own, code)
			require.Equal(t, byte(' '), code[i])
		}
	}
	return true
}

var tokens = []string{
	`""`, `"a}"`, `'{'`, `"\""`, `'\''`, `"\\"`, `r"\"`, `R'\'`, `r'\\'`, `r"}"`, `b"}"`, `B'{'`, `br"\"`, `bR'}'`, `"""a"}b"""`,
	"'''\n}'''", `r"""\"""`, "R'''{'\n'''", `b"""}"""`, `"""\""""""`, "// it's } {\n", "//\n", "`a-b/c.d e`", "{", "}", "}", "{", "[", "]", "(", ")",
	".", ",", "?", ":", "+", "-", "*", "/", "%", "!", "==", "!=", "<", "<=", "&&", "||", "a", "r", "b", "br", "rb", "in", "true", "_x1",
	"1", "0", "0x", "0xb", "0xbr", "1u", "1.5", ".5", "1e5", "1e", "1.5e-3", "1.", "é", " ", "\n", "\t", "\r",
}

func TestEndIsWhereTheLexerOfCELSeesIt(t *testing.T) {
	t.Parallel()
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 8 {
			parts := rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 12).Draw(t, "tokens")
			if requireLexed(t, strings.Join(parts, rapid.SampledFrom([]string{"", " "}).Draw(t, "between"))) {
				known++
			}
		}
	})
	require.Greater(t, known, 20)
}

// FuzzEnd compares any text.
func FuzzEnd(f *testing.F) {
	for _, seed := range []string{`contains(r'\\')} + {`, "a // it's }\n}", `"""a""" } b'}'`, "`a/b` }", `{"a": {}}}`, `0xbr'}'`, `"" ""}"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { requireLexed(t, strings.ToValidUTF8(text, "")) })
}
