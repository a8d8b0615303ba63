package clitest

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// Reference returns the text of docs/cli.md on a command and its subcommands: use, description,
// and every flag with default and variable. It leaves out those of cobra itself (help,
// completion).
func Reference(root *cobra.Command) string {
	var b strings.Builder
	describe(&b, root)
	return b.String()
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	level := "##"
	if cmd.HasParent() {
		level = "###"
	}
	fmt.Fprintf(b, "%s `%s`\n\n", level, cmd.CommandPath())
	if cmd.Runnable() {
		fmt.Fprintf(b, "    %s\n\n", cmd.UseLine())
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(text))
	if cmd.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", unindent(cmd.Example))
	}
	flags(b, cmd)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			describe(b, sub)
		}
	}
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func flags(b *strings.Builder, cmd *cobra.Command) {
	any := false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !any {
			b.WriteString("| flag | environment | default | |\n|---|---|---|---|\n")
			any = true
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, code(cli.EnvOf(f)), code(shown(f)), strings.ReplaceAll(usage, "|", "\\|"))
	})
	if any {
		b.WriteString("\n")
	}
}

func shown(f *pflag.Flag) string {
	if f.DefValue == "false" || f.DefValue == "[]" || f.DefValue == "0" || f.DefValue == "0s" {
		return ""
	}
	return strings.Trim(f.DefValue, "[]")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// Section returns the part of a document between the comments `<!-- name -->` and `<!-- /name
// -->`, and the document with text in its place. ok is false if the comments are missing.
func Section(document, name, text string) (section, replaced string, ok bool) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return "", "", false
	}
	section, after, found := strings.Cut(rest, end)
	return section, before + begin + text + end + after, found
}
