package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// DefaultDevDir is where `worker dev` keeps its data unless told otherwise, and
// where quipu looks when it is told nothing.
const DefaultDevDir = ".quipu"

// devFile is the name of what a running `worker dev` says of itself.
const devFile = "dev.json"

// DevFile is DIR/dev.json: there while `worker dev` is ready, gone when it has
// ended. It holds the database's password and is readable by its owner alone.
type DevFile struct {
	Postgres string `json:"postgres"` // connection string
	NATS     string `json:"nats"`     // URL
	HTTP     string `json:"http"`     // URL, "" without an HTTP server
	PID      int    `json:"pid"`
	Space    string `json:"space"`
}

// DevPath is the path of the file below a data directory.
func DevPath(dir string) string { return filepath.Join(dir, devFile) }

// Write puts the file in place at once: a reader sees all of it or nothing.
func (d DevFile) Write(dir string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", DevPath(dir), err)
	}
	temp, err := os.CreateTemp(dir, devFile+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", DevPath(dir), err)
	}
	_, err = temp.Write(append(text, '\n'))
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), DevPath(dir))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", DevPath(dir), err), os.Remove(temp.Name()))
	}
	return nil
}

// RemoveDevFile takes the file away; that there is none is no error.
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
		return d, fmt.Errorf("read %s: %w", DevPath(dir), err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("read %s: %w", DevPath(dir), err)
	}
	return d, nil
}

// ErrNoDatabase says that nothing names a database.
var ErrNoDatabase = errors.New("no database is named: give --postgres DSN (QUIPU_POSTGRES), or --dev DIR of a running `worker dev`")

// ChooseDev says whose dev.json names the database, "" where the connection string does:
// --postgres, else --dev, else QUIPU_POSTGRES, else QUIPU_DEV, else a `worker dev` of
// this directory. dsn and dev are the values of the flags or their variables, given says
// that it was the flag. The error is ErrNoDatabase.
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
