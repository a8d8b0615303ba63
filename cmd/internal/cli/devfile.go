package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// ChooseDev returns the directory whose dev.json names the database, or "" if the connection
// string does. The order is: --postgres, --dev, QUIPU_POSTGRES, QUIPU_DEV, a `worker dev` of this
// directory. dsn and dev are the values of flag or variable; dsnGiven and devGiven say that it
// was the flag. The error is ErrNoDatabase.
func ChooseDev(dsn string, dsnGiven bool, dev string, devGiven bool) (dir string, err error) {
	switch {
	case dsnGiven:
		return "", nil
	case devGiven || dsn == "" && dev != "":
		return dev, nil
	case dsn != "":
		return "", nil
	}
	if _, err := os.Stat(DevPath(DefaultDevDir)); err != nil {
		return "", ErrNoDatabase
	}
	return DefaultDevDir, nil
}
