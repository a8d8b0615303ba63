package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quipu-journal/quipu/dev"
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

// startWorkers starts the workers and waits until they take part in the work.
func (d *demo) startWorkers(ctx context.Context) error {
	for n := range d.workers {
		if err := d.startWorker(n); err != nil {
			return err
		}
	}
	for {
		live, err := d.rt.Processes(ctx)
		if err != nil || len(live) == len(d.workers) {
			return cmp.Or(context.Cause(ctx), err)
		}
		time.Sleep(lookEvery)
	}
}

// startWorker starts worker number n. If it ends before it is told to, so does the demo.
func (d *demo) startWorker(n int) error {
	w := &worker{name: fmt.Sprintf("worker-%c", 'a'+n)}
	w.log = filepath.Join(d.dir, w.name+".log")
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd := exec.Command(filepath.Join(d.bin, "worker"), "--name", w.name)
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
func (d *demo) killWorker(ended int) error {
	const victim = 1
	w := d.workers[victim]
	if err := w.end(syscall.SIGKILL); err != nil {
		return err
	}
	d.say.step("Killed %s (pid %d) with SIGKILL when %d orders had ended; starting it again", w.name, w.PID(), ended)
	defer d.say.step("Running the other orders")
	return d.startWorker(victim)
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
