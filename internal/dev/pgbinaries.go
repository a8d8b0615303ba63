package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// MissingError says that Postgres is not installed.
type MissingError struct {
	// Looked lists the places that were searched.
	Looked []string
}

// Error implements error. It says what to install.
func (e *MissingError) Error() string {
	return "no Postgres binaries (initdb and postgres) found in " + strings.Join(e.Looked, ", ") +
		": install the server package (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server;" +
		" Alpine: apk add postgresql; macOS: brew install postgresql), or name the directory that has them (worker dev: --postgres-bin; in Go: PostgresOptions.BinDir)"
}

// findBinaries returns the directory with both initdb and postgres.
func findBinaries(ctx context.Context, binDir string) (string, error) {
	if binDir != "" {
		if hasBinaries(binDir) {
			return binDir, nil
		}
		return "", &MissingError{Looked: []string{binDir}}
	}
	looked := []string{"PATH"}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil && hasBinaries(filepath.Dir(real)) {
			return filepath.Dir(real), nil
		}
		if hasBinaries(filepath.Dir(path)) {
			return filepath.Dir(path), nil
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dir := strings.TrimSpace(string(out))
		if hasBinaries(dir) {
			return dir, nil
		}
		looked = append(looked, dir)
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/libexec/postgresql*"} {
		looked = append(looked, pattern)
		if dir := newest(pattern); dir != "" {
			return dir, nil
		}
	}
	return "", &MissingError{Looked: looked}
}

// newest returns the match with the highest version number that has the binaries.
func newest(pattern string) string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return ""
	}
	best, bestVersion := "", -1
	for _, dir := range dirs {
		version, err := strconv.Atoi(strings.Map(digits, dir))
		if err != nil {
			version = 0
		}
		if version > bestVersion && hasBinaries(dir) {
			best, bestVersion = dir, version
		}
	}
	return best
}

func digits(r rune) rune {
	if r >= '0' && r <= '9' {
		return r
	}
	return -1
}

func hasBinaries(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// installer runs the system's package manager; tests replace run.
type installer struct {
	root bool
	conf string // postgresql-common's configuration of new clusters
	out  io.Writer
	look func(file string) (string, error)
	run  func(ctx context.Context, out io.Writer, name string, args ...string) error
}

func systemInstaller(out io.Writer) installer {
	return installer{
		root: os.Geteuid() == 0, conf: "/etc/postgresql-common/createcluster.conf", out: out, look: exec.LookPath,
		run: func(ctx context.Context, out io.Writer, name string, args ...string) error {
			cmd := exec.CommandContext(ctx, name, args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			cmd.Stdout, cmd.Stderr = out, out
			return cmd.Run()
		},
	}
}

// install installs Postgres with apt-get, but without the cluster that Debian would create and
// start. It installs postgresql-common first, whose configuration can forbid that.
func (i installer) install(ctx context.Context) error {
	if !i.root {
		return errors.New("installing Postgres needs root")
	}
	if _, err := i.look("apt-get"); err != nil {
		return fmt.Errorf("installing Postgres needs apt-get: %w", err)
	}
	step := func(args ...string) error {
		_, _ = fmt.Fprintln(i.out, "dev: apt-get", strings.Join(args, " ")) // progress only
		if err := i.run(ctx, i.out, "apt-get", args...); err != nil {
			return fmt.Errorf("apt-get %s: %w", strings.Join(args, " "), err)
		}
		return nil
	}
	if err := step("update", "-q"); err != nil {
		return err
	}
	if err := step("install", "-y", "-q", "--no-install-recommends", "postgresql-common"); err != nil {
		return err
	}
	if err := forbidMainCluster(i.conf); err != nil {
		return err
	}
	return step("install", "-y", "-q", "--no-install-recommends", "postgresql")
}

func forbidMainCluster(conf string) error {
	const line = "create_main_cluster = false\n"
	text, err := os.ReadFile(conf)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forbid Debian's main cluster: %w", err)
	}
	if strings.Contains("\n"+string(text), "\n"+line) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		return fmt.Errorf("forbid Debian's main cluster: %w", err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if err := os.WriteFile(conf, append(text, line...), 0o644); err != nil {
		return fmt.Errorf("forbid Debian's main cluster: %w", err)
	}
	return nil
}
