package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

const (
	startWait = 90 * time.Second // for a process to be ready, making a cluster included
	askWait   = 10 * time.Second // for an HTTP answer
	pollEvery = 50 * time.Millisecond
)

// stack is everything that runs.
type stack struct {
	opts     options
	dir, log string
	dev      cli.DevFile
	paysvc   string // its URL
	children []*child
	workers  [2]*worker
	counted  map[string]int64 // counters of processes that have ended
}

// worker is one worker process and where its counters are.
type worker struct {
	*child
	http string
}

func (s *stack) binary(name string) string { return filepath.Join(s.opts.bin, name) }

func (s *stack) add(c *child) { s.children = append(s.children, c) }

// startServers runs the embedded servers and waits for dev.json.
func (s *stack) startServers(ctx context.Context) error {
	data := filepath.Join(s.dir, "data")
	c, err := startChild("servers", s.binary("worker"), s.log, nil, nil, "dev", "--servers-only", "--data", data)
	if err != nil {
		return err
	}
	s.add(c)
	err = s.await(ctx, c, func() (bool, error) {
		_, err := os.Stat(cli.DevPath(data))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	s.dev, err = cli.ReadDevFile(data)
	return err
}

// await polls until ready, c has ended, or too much time has passed.
func (s *stack) await(ctx context.Context, c *child, ready func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("%s is not ready after %s, see %s", c.name, startWait, c.log))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		select {
		case <-c.exited:
			return fmt.Errorf("%s ended: %s, see %s", c.name, c.state, c.log)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// startWatched starts a process and waits for the URL that find sees in a line of
// its output.
func (s *stack) startWatched(ctx context.Context, name, binary string, env []string, find func(line string) string, args ...string) (*child, string, error) {
	found := make(chan string, 1)
	c, err := startChild(name, s.binary(binary), s.log, env, func(line string) {
		if url := find(line); url != "" {
			select {
			case found <- url:
			default: // the first one counts
			}
		}
	}, args...)
	if err != nil {
		return nil, "", err
	}
	s.add(c)
	url := ""
	err = s.await(ctx, c, func() (bool, error) {
		select {
		case url = <-found:
			return true, nil
		default:
			return false, nil
		}
	})
	return c, url, err
}

func (s *stack) startPaysvc(ctx context.Context) (err error) {
	_, s.paysvc, err = s.startWatched(ctx, "paysvc", "paysvc", nil, func(line string) string {
		if strings.HasPrefix(line, "http://") {
			return strings.TrimSpace(line)
		}
		return ""
	}, "--addr", "127.0.0.1:0")
	return err
}

// startWorker starts worker number n. Its connection strings are in its
// environment, where other users of the machine do not see them.
func (s *stack) startWorker(ctx context.Context, n int) error {
	name := fmt.Sprintf("worker-%c", 'a'+n)
	c, url, err := s.startWatched(ctx, name, "worker", s.connection(), func(line string) string {
		var said struct {
			Message string `json:"msg"`
			URL     string `json:"url"`
		}
		if json.Unmarshal([]byte(line), &said) != nil || said.Message != "serves http" {
			return ""
		}
		return said.URL
	}, "--log", "json", "--http", "127.0.0.1:0", "--name", name)
	s.workers[n] = &worker{child: c, http: url}
	return err
}

func (s *stack) connection() []string {
	return []string{"QUIPU_POSTGRES=" + s.dev.Postgres, "QUIPU_NATS=" + s.dev.NATS, "QUIPU_SPACE=" + s.dev.Space}
}

// count adds the counters of a worker to those of the ended ones.
func (s *stack) count(ctx context.Context, w *worker) error {
	var now map[string]int64
	if err := ask(ctx, w.http+"/debug/counters", &now); err != nil {
		return fmt.Errorf("counters of %s: %w", w.name, err)
	}
	for name, n := range maps.All(now) {
		s.counted[name] += n
	}
	return nil
}

// total sums the counters of a metric over its attributes.
func (s *stack) total(metric string) (sum int64) {
	for name, n := range s.counted {
		if name == metric || strings.HasPrefix(name, metric+"{") {
			sum += n
		}
	}
	return sum
}

// quipu runs the operators' command and returns what it printed.
func (s *stack) quipu(ctx context.Context, stdin *os.File, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.binary("quipu"), args...)
	cmd.Env = append(os.Environ(), s.connection()...)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("quipu %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// stop ends the processes, the last one first.
func (s *stack) stop() error {
	var errs []error
	for i := len(s.children) - 1; i >= 0; i-- {
		if c := s.children[i]; c.running() {
			errs = append(errs, c.stop())
		}
	}
	s.children = nil
	return errors.Join(errs...)
}

// ask gets JSON.
func ask(ctx context.Context, url string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}
