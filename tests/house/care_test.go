package house

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// S16: it says how to report a vulnerability; updates are proposed for every kind of dependency that the repository
// has; and what a change must pass has the linters and govulncheck.
func TestS16TheRepositoryIsCaredFor(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		return string(text)
	}
	for _, part := range []string{"## Report a vulnerability", "## What is in scope", "## Supported versions"} {
		require.Contains(t, read("SECURITY.md"), part)
	}
	var updates struct {
		Updates []struct {
			Ecosystem string `yaml:"package-ecosystem"`
			Directory string `yaml:"directory"`
		} `yaml:"updates"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(".github/dependabot.yml")), &updates))
	var have []string
	for _, u := range updates.Updates {
		have = append(have, u.Ecosystem+" "+u.Directory)
	}
	for ecosystem, file := range map[string]string{
		"gomod /": "go.mod", "docker /": "Dockerfile", "docker-compose /": "docker-compose.yml", "npm /examples/javascript": "examples/javascript/package.json",
	} {
		require.FileExists(t, filepath.Join(root, file))
		require.True(t, slices.Contains(have, ecosystem), "%s is kept up to date", file)
	}
	_, check, found := strings.Cut(read("Makefile"), "\ncheck: ")
	require.True(t, found)
	check, _, _ = strings.Cut(check, "\n\n")
	for _, linter := range []string{"scripts/format", "go vet ./...", "go tool staticcheck", "go mod tidy -diff", "scripts/vulnerabilities"} {
		require.Contains(t, check, linter)
	}
	require.Contains(t, read("scripts/vulnerabilities"), "govulncheck")
}
