package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// DefaultDevDir is the default data directory of `worker dev`, and where quipu looks for one by
// default.
const DefaultDevDir = ".quipu"

// devFile is the name of the file in which a running `worker dev` describes itself.
const devFile = "dev.json"

// DevFile is DIR/dev.json. It exists while `worker dev` is ready. It has the database's password,
// and only its owner may read it.
type DevFile struct {
	Postgres string `json:"postgres"` // connection string
	NATS     string `json:"nats"`     // URL
	HTTP     string `json:"http"`     // URL, "" without an HTTP server
	PID      int    `json:"pid"`
	Space    string `json:"space"`
}

// DevPath returns the path of the file in a data directory.
func DevPath(dir string) string { return filepath.Join(dir, devFile) }

// Write puts the file in place atomically: a reader sees all of it or nothing.
func (d DevFile) Write(dir string) error {
	text, err := d.text()
	if err != nil {
		return fmt.Errorf("write %s: %w", DevPath(dir), err)
	}
	temp, err := os.CreateTemp(dir, devFile+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", DevPath(dir), err)
	}
	_, err = temp.Write(text)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), DevPath(dir))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", DevPath(dir), err), os.Remove(temp.Name()))
	}
	return nil
}

// RemoveDevFile removes the file. A missing file is no error.
func RemoveDevFile(dir string) error {
	if err := os.Remove(DevPath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// ReadDevFile reads the file of a running `worker dev`.
func ReadDevFile(dir string) (DevFile, error) {
	var d DevFile
	text, err := os.ReadFile(DevPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return d, fmt.Errorf("%s is not there: start `worker dev --data %s` and wait until it is ready: %w", DevPath(dir), dir, err)
	}
	if err != nil {
		return d, PathError(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("read %s: %w", DevPath(dir), err)
	}
	return d, nil
}

// text is the content of the file.
func (d DevFile) text() ([]byte, error) {
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// ErrNoDatabase says that no flag, variable or `worker dev` names a database.
var ErrNoDatabase = errors.New("no database is named: give --postgres DSN (QUIPU_POSTGRES), or --dev DIR of a running `worker dev`")

// UseDev finds the servers of cmd, which has read the flags env from variables (ReadEnv). The first of these
// names the database: --postgres, --dev, QUIPU_POSTGRES, QUIPU_DEV, a `worker dev` of this directory. Of a
// `worker dev` the file also sets --nats and --space, where cmd has them: --nats unless it was given, since
// that of a variable is of other servers, and --space unless flag or variable did. It returns the directory
// of that file, "" for none. The error is ErrNoDatabase, or says why the file cannot be read.
func UseDev(cmd *cobra.Command, env map[string]bool) (dir string, err error) {
	flag := cmd.Flags().Lookup
	given := func(name string) bool { return flag(name).Changed && !env[name] }
	dsn, dir := flag("postgres").Value, flag("dev").Value.String()
	switch {
	case given("postgres"), !given("dev") && dsn.String() != "":
		return "", nil
	case dir == "":
		dir = DefaultDevDir
		if _, err := os.Stat(DevPath(dir)); err != nil {
			return "", ErrNoDatabase
		}
	}
	file, err := ReadDevFile(dir)
	if err != nil {
		return "", err
	}
	err = dsn.Set(file.Postgres)
	if f := flag("nats"); f != nil && !given("nats") {
		err = errors.Join(err, f.Value.Set(file.NATS))
	}
	if f := flag("space"); !f.Changed {
		err = errors.Join(err, f.Value.Set(file.Space))
	}
	return dir, err
}
