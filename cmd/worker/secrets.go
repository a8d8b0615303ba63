package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/work"
	"github.com/quipu-journal/quipu/workers"
)

// Where secrets are (S14): variables, or files of a directory.
const (
	envSecret = "QUIPU_SECRET_" // + NAME: the value
	envHosts  = "QUIPU_HOSTS_"  // + NAME: its hosts
	hostsFile = ".hosts"        // DIR/NAME is the value, DIR/NAME.hosts its hosts
)

// builtins are the built-in handlers as the flags want them.
func (p *process) builtins() workers.Builtins {
	b := workers.Builtins{
		HTTPAllow: p.opts.httpAllow, HTTPDeny: p.opts.httpDeny, HTTPOwn: p.own.list, Secrets: p.secretOfEnv,
	}
	if dir := p.opts.secrets; dir != "" {
		b.Secrets = func(name string) (workers.Secret, error) { return secretOfDir(dir, name) }
	}
	return b
}

// checkSecrets refuses a directory that is not there: each call that needs a secret would fail.
func (o *options) checkSecrets() error {
	if o.secrets == "" {
		return nil
	}
	if _, err := os.Stat(o.secrets); err != nil { // it need not be readable, only its files
		return cli.Exit(cli.CodeUsage, fmt.Errorf("--secrets: %w", cli.PathError(err)))
	}
	return nil
}

var errNoSecret = errors.New("this worker does not have it")

func (p *process) secretOfEnv(name string) (workers.Secret, error) {
	value := p.getenv(envSecret + name)
	if value == "" {
		return workers.Secret{}, fmt.Errorf("%w: set %s%s", errNoSecret, envSecret, name)
	}
	hosts, err := hostsOf(p.getenv(envHosts+name), envHosts+name)
	return workers.Secret{Value: value, Hosts: hosts}, err
}

// secretOfDir reads a secret at each call, so that it can be replaced under a running
// worker. A line break at the end of the file does not count.
func secretOfDir(dir, name string) (workers.Secret, error) {
	value, err := readSecret(filepath.Join(dir, name))
	if err != nil {
		return workers.Secret{}, err
	}
	path := filepath.Join(dir, name+hostsFile)
	text, err := readSecret(path)
	if err != nil {
		return workers.Secret{}, fmt.Errorf("its hosts: %w", err)
	}
	hosts, err := hostsOf(text, path)
	return workers.Secret{Value: value, Hosts: hosts}, err
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: there is no file %s", errNoSecret, path)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, work.MaxSecret+3)) // with a line break, and one more
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), err
}

// hostsOf reads names between commas, spaces and line breaks.
func hostsOf(text, place string) ([]string, error) {
	hosts := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	if len(hosts) == 0 {
		return nil, fmt.Errorf("%s does not say to which hosts it is sent", place)
	}
	return hosts, nil
}
