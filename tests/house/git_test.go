package house

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// maxTracked bounds a file of the repository, in bytes. What is larger is mostly made by a build
// or by a generator.
const maxTracked = 256 << 10

// pictures are all files of the repository that are not text.
var pictures = []string{"docs/figures/console-job.webp", "docs/figures/console-jobs.webp"}

// git runs git in the repository, which may belong to another user. false: this is no clone.
func git(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = filepath.FromSlash(root)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && strings.Contains(stderr.String(), "not a git repository") {
		return "", false
	}
	require.NoError(t, err, stderr.String())
	return string(out), true
}

// foreign says why a file does not belong into the repository; "" if it does.
func foreign(name string, content []byte) string {
	const looked = 8000 // bytes, as many as git itself looks at
	switch {
	case len(content) > maxTracked:
		return fmt.Sprintf("%s: %d bytes, the limit is %d: is it made by a build or a generator?", name, len(content), maxTracked)
	case bytes.IndexByte(content[:min(len(content), looked)], 0) >= 0 && !slices.Contains(pictures, name):
		return name + ": it is no text, and not one of the pictures that git_test.go lists"
	}
	return ""
}

func TestNothingBuiltIsTracked(t *testing.T) {
	t.Parallel()
	tracked, clone := git(t, "ls-files", "-z")
	var broken []string
	walk(t, func(name string, content []byte) {
		if clone && !strings.Contains("\x00"+tracked, "\x00"+name+"\x00") {
			return
		}
		if why := foreign(name, content); why != "" {
			broken = append(broken, why)
		}
	})
	none(t, broken, "the repository holds sources, nothing that is made of them")
}

func TestRuleOfTrackedFilesFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	require.Empty(t, foreign("a.go", []byte("package a\n")))
	require.Empty(t, foreign(pictures[0], []byte("RIFF\x00")))
	require.NotEmpty(t, foreign("tool", []byte("\x7fELF\x02\x01\x01\x00")))
	require.NotEmpty(t, foreign("docs/figures/new.webp", []byte("RIFF\x00")))
	require.NotEmpty(t, foreign("data.json", bytes.Repeat([]byte("1"), maxTracked+1)))
}

// maxSubject bounds the subject of a commit, in characters.
const maxSubject = 72

var (
	// areaFirst is "area: what changes"; an area may be a list, and a tool may add to it.
	areaFirst = regexp.MustCompile(`^[a-z][a-z0-9_./*-]*(, [a-z0-9_./*-]+)*(\([a-z-]+\))?: \S`)
	// mergesFolder is what git writes when a folder is pulled.
	mergesFolder = regexp.MustCompile(`^Merge .* of \S*/`)
)

// subjectFault says what is wrong with the subject of a commit; "" if nothing is.
func subjectFault(subject string, merge bool) string {
	switch {
	case utf8.RuneCountInString(subject) > maxSubject:
		return fmt.Sprintf("%d characters, the limit is %d: the rest belongs into the body", utf8.RuneCountInString(subject), maxSubject)
	case mergesFolder.MatchString(subject):
		return "it names a folder of one machine: rebase instead"
	case !merge && !areaFirst.MatchString(subject):
		return `it is not "area: what changes"`
	}
	return ""
}

// TestCommitSubjects holds the commits since the one that brought this file.
func TestCommitSubjects(t *testing.T) {
	t.Parallel()
	brought, clone := git(t, "log", "--diff-filter=A", "--format=%H", "--", "tests/house/git_test.go")
	first := strings.Fields(brought)
	if !clone || len(first) == 0 {
		t.Skip("there is no history to look at")
	}
	log, _ := git(t, "log", "--format=%h%x00%P%x00%s", first[len(first)-1]+"..HEAD")
	var broken []string
	for line := range strings.Lines(log) {
		hash, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\x00")
		parents, subject, _ := strings.Cut(rest, "\x00")
		if fault := subjectFault(subject, strings.Contains(parents, " ")); fault != "" {
			broken = append(broken, hash+" "+subject+": "+fault)
		}
	}
	none(t, broken, "a commit's subject says in a line what changes")
}

func TestRuleOfSubjectsFindsWhatBreaksIt(t *testing.T) {
	t.Parallel()
	for _, right := range []string{
		"engine: fold early answers into the batch of their cause", "engine, workers: name the session", "tests/house: refuse binaries",
		"build(deps): bump the group of modules", "docs: " + strings.Repeat("ä", maxSubject-len("docs: ")),
	} {
		require.Empty(t, subjectFault(right, false), right)
	}
	for _, wrong := range []string{
		"", "Mend the loop", "engine:", "engine: " + strings.Repeat("x", maxSubject), "Engine: fold", "Merge branch 'main' of /srv/quipu",
	} {
		require.NotEmpty(t, subjectFault(wrong, false), wrong)
	}
	require.Empty(t, subjectFault("Merge pull request 12 from fix", true))
	require.NotEmpty(t, subjectFault("Merge branch 'main' of ../quipu", true))
}
