package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/dev"
)

const (
	stopWait  = 45 * time.Second // for the end of a worker in order; then it is killed
	lookEvery = 50 * time.Millisecond
)

// worker is a worker process.
type worker struct {
	*dev.Process
	name, log string
	told      atomic.Bool // to end
}

// startWorker starts worker number n and waits until it takes part in the work.
func (d *demo) startWorker(ctx context.Context, n int, name string) error {
	if err := d.launch(n, name); err != nil {
		return err
	}
	for {
		live, err := d.rt.Processes(ctx)
		if err != nil || slices.ContainsFunc(live, func(p quipu.Process) bool { return p.Name == name }) {
			return cmp.Or(context.Cause(ctx), err)
		}
		time.Sleep(lookEvery)
	}
}

// launch starts the process of worker number n. If it ends before it is told to, so does
// the demo.
func (d *demo) launch(n int, name string) error {
	w := &worker{name: name, log: filepath.Join(d.dir, name+".log")}
	log, err := os.Create(w.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd := exec.Command(filepath.Join(d.bin, "worker"), "--name", name)
	cmd.Env, cmd.Stdout, cmd.Stderr = d.env, log, log
	if w.Process, err = dev.StartProcess(cmd); err != nil {
		return fmt.Errorf("%w: are the binaries built?", err)
	}
	d.workers[n] = w
	go func() {
		<-w.Exited()
		if !w.told.Load() {
			d.fail(w.ended())
		}
	}()
	return nil
}

// killWorker kills a worker in the middle of its work, and starts it again.
func (d *demo) killWorker(ctx context.Context, ended int) error {
	w := d.workers[1]
	if err := w.end(syscall.SIGKILL); err != nil {
		return err
	}
	d.say.step("Killed %s (pid %d) with SIGKILL when %d orders had ended; starting it again", w.name, w.PID(), ended)
	defer d.say.step("Running the other orders")
	return d.startWorker(ctx, 1, w.name+"-again")
}

// stopWorkers ends the workers in order, those that run.
func (d *demo) stopWorkers() error {
	var errs []error
	for _, w := range d.workers {
		if w == nil {
			continue
		}
		err := w.end(syscall.SIGTERM)
		if err == nil && !w.State().Success() {
			err = w.ended()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// end sends a signal and waits for the end.
func (w *worker) end(signal syscall.Signal) error {
	w.told.Store(true)
	return w.Stop(signal, stopWait, syscall.SIGKILL)
}

func (w *worker) ended() error { return fmt.Errorf("%s ended: %s, see %s", w.name, w.State(), w.log) }
