package guarantees

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Directory is the variable that names the directory to record in. Where it is
// not set nothing is recorded, so that a test that somebody just runs leaves the
// tree alone; make sets it for RECORD=1.
const Directory = "QUIPU_RECORD"

// Record writes v, which is one of the structs of this package, as name.json to
// the directory that [Directory] names, and does nothing where that is not set.
func Record(name string, v any) error {
	dir := os.Getenv(Directory)
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	file := filepath.Join(dir, name+".json")
	if m, ok := v.(merger); ok {
		old, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("record %s: %w", name, err)
		}
		if v, err = m.merge(old); err != nil {
			return fmt.Errorf("record %s: %s: %w", name, file, err)
		}
	}
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	// Renamed into place, so that a run that dies leaves the old counts.
	if err := os.WriteFile(file+".new", append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return os.Rename(file+".new", file)
}

// Begin begins a run. What it returns ends the run and says what it was.
func Begin() (end func() Run) {
	begun, cpu := time.Now(), processTime()
	commit := checkedOut() // now: who runs for hours may commit meanwhile
	return func() Run {
		return Run{
			Date: time.Now().UTC().Format(time.DateOnly), Commit: commit,
			Seconds: seconds(time.Since(begun)), CPU: seconds(processTime() - cpu),
		}
	}
}

// seconds are d with two digits behind the point.
func seconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Millisecond)) / float64(time.Second)
}

// processTime is what this process has used of all processors.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// checkedOut is the commit of the sources, with a + where other files than counts
// and what is rendered from them were changed since.
func checkedOut() string {
	commit, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	changed, err := git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude,top)tests/guarantees/counts", ":(exclude,top)GUARANTEES.md")
	if err != nil || changed != "" {
		return commit + "+"
	}
	return commit
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// decode reads a file of counts; nothing is an empty one.
func decode(raw []byte, into any) error {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// natural compares ids such as K2 and K10 by their letter, then their number.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(letters(a), letters(b)), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func letters(id string) string { return strings.TrimRight(id, "0123456789") }
