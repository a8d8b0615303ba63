package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu"
)

// childVar says to this program that it is a process of a part that needs several: its
// childConfig, as JSON.
const childVar = "QUIPU_BENCH_CHILD"

// childConfig is what a child process does: it takes part in the work of the space from
// its start to the end of its input.
type childConfig struct {
	Postgres, NATS, Space string

	Name    string        // in the keys of its jobs
	Work    time.Duration // of its handler
	Callers int           // in it, of jobs of ten steps, at its first line of input
	Jobs    int
}

// runChild is a child process. It says when it is ready, and when its jobs have ended.
func runChild(ctx context.Context, config string, in io.Reader, out io.Writer) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	rt, err := quipu.Open(ctx, quipu.Config{
		Postgres: c.Postgres, NATS: c.NATS, Space: c.Space, Workers: handlers(c.Work), Concurrency: 1024,
		NoMigrate: true,
	})
	if err != nil {
		return err
	}
	stop := running(ctx, rt)
	loop := func(what string, jobs int) error {
		_, err := closed(ctx, max(1, c.Callers), upTo(jobs), func(ctx context.Context, n int) error {
			return startAndWait(ctx, rt, "w10", fmt.Sprintf("%s-%s-%d", what, c.Name, n))
		})
		if err == nil {
			_, err = fmt.Fprintln(out, what)
		}
		return err
	}
	input := bufio.NewScanner(in)
	if err = loop("ready", max(1, min(c.Callers, c.Jobs))); err == nil && input.Scan() {
		err = loop("done", c.Jobs)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in) // to its end
	}
	return errors.Join(err, stop())
}

// child is a child process, seen from its parent.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// spawn starts a child process.
func (f *family) spawn(ctx context.Context, c childConfig) error {
	c.Postgres, c.NATS, c.Space, c.Name = f.dsn, f.nats.URL(), f.space, strconv.Itoa(len(f.children))
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	p := &child{Cmd: exec.CommandContext(ctx, os.Args[0])} //nolint:gosec // this program
	p.Env, p.Stderr = append(os.Environ(), childVar+"="+string(config)), os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		p.in, err = p.StdinPipe()
	}
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return err
	}
	p.out = bufio.NewScanner(out)
	f.children = append(f.children, p)
	return nil
}

// await waits until the child says that it is ready, or done.
func (c *child) await(what string) error {
	if c.out.Scan() && c.out.Text() == what {
		return nil
	}
	return fmt.Errorf("a child process was not %s: %w", what, errors.Join(c.out.Err(), io.ErrUnexpectedEOF))
}

// family is a space of its own, and child processes that take part in its work. The
// client is a runtime of this process, which only starts jobs and waits.
type family struct {
	*bench
	space    string
	client   *quipu.Runtime
	children []*child
}

// family starts so many child processes, and is back when they are ready.
func (b *bench) family(ctx context.Context, n int, c childConfig) (f *family, err error) {
	f = &family{bench: b, space: b.space()}
	f.client, err = quipu.Open(ctx, quipu.Config{Postgres: b.dsn, NATS: b.nats.URL(), Space: f.space})
	if err != nil {
		return nil, err
	}
	err = f.client.Deploy(ctx, linear(1), linear(10))
	for range n {
		if err == nil {
			err = f.spawn(ctx, c)
		}
	}
	for _, p := range f.children {
		if err == nil {
			err = p.await("ready")
		}
	}
	if err != nil {
		f.leave(ctx)
		return nil, err
	}
	return f, nil
}

// leave ends the processes and removes the space.
func (f *family) leave(ctx context.Context) {
	for _, p := range f.children {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	f.client.Close()
	_ = f.drop(ctx, f.space)
}
