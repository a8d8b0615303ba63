package gobuild

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// shared has the programs of all test binaries. go build links a program again only if it has
// changed.
var shared = filepath.Join(os.TempDir(), fmt.Sprintf("quipu-gobuild-%d", os.Getuid()))

// Flags are the flags of the test itself: with others, go compiles every package once more.
func Flags() []string { return slices.Clone(race) }

// Build runs go build in dir. packages are given by path (./x). to is the program, or an existing
// directory for several. The error includes go's output.
func Build(dir, to string, packages ...string) error {
	made := filepath.Join(shared, "bin"+strings.Join(race, ""))
	if err := os.MkdirAll(made, 0o700); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	release, err := lock(made)
	if err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	defer release()
	// Linking is faster without debug information.
	args := slices.Concat([]string{"build", "-ldflags=-s -w", "-o", made + "/"}, race, packages)
	build := exec.Command("go", args...) //nolint:gosec // of a test
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", strings.Join(packages, " "), err, out)
	}
	for _, pkg := range packages {
		name, target := path.Base(pkg), to
		if info, err := os.Stat(to); err == nil && info.IsDir() {
			target = filepath.Join(to, name)
		}
		if err := take(filepath.Join(made, name), target); err != nil {
			return fmt.Errorf("go build %s: %w", pkg, err)
		}
	}
	return nil
}

// lock waits until no other process builds in dir.
func lock(dir string) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() {
		_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) // a child that was just forked may have the file, too
		_ = file.Close()
	}, nil
}

// take copies a program, since the shared one may be rebuilt while this test runs it. Meanwhile
// this process starts no other: a child would have the file, too, until it becomes its own
// program, and what somebody may write cannot be run (ETXTBSY).
func take(from, to string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
