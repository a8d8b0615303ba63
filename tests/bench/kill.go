package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/workers"
)

// What the kill part does.
const (
	killCallers = 50
	killAfter   = 3 * time.Second
	killRounds  = 3
	killLonger  = 10 * time.Second // how long jobs are started after a kill
)

// workerVar says to this program that it is a worker process of the kill part: the
// database, the NATS server and the space, as JSON.
const workerVar = "QUIPU_BENCH_WORKER"

// workerProcess runs the worker process until its standard input ends.
func workerProcess(ctx context.Context, config string) error {
	var at struct{ Postgres, NATS, Space string }
	if err := json.Unmarshal([]byte(config), &at); err != nil {
		return err
	}
	reg := workers.New()
	workers.HandleRaw(reg, "noop", func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
		time.Sleep(5 * time.Millisecond) // the work, so that a kill meets handlers
		return in, nil
	})
	rt, err := quipu.Open(ctx, quipu.Config{Postgres: at.Postgres, NATS: at.NATS, Space: at.Space, Workers: reg, NoMigrate: true})
	if err != nil {
		return err
	}
	defer rt.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return rt.Run(ctx)
}

// kills measures the longest pause of a job when one of two worker processes is killed:
// callers start jobs of ten steps and wait for each, from a third process.
func (b *bench) kills(ctx context.Context) error {
	if !b.wants("kill") {
		return nil
	}
	fmt.Println()
	for round := range killRounds {
		usual, longest, err := b.kill(ctx, round)
		if err != nil {
			return fmt.Errorf("kill: %w", err)
		}
		fmt.Printf("kill -9 of one of two workers: the longest job took %s (p99 before the kill: %s), aim ≤ 4 s\n", round10(longest), round10(usual))
	}
	return nil
}

func round10(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

func (b *bench) kill(ctx context.Context, round int) (usual, longest time.Duration, err error) {
	space := fmt.Sprintf("kill%d", round)
	rt, err := quipu.Open(ctx, quipu.Config{Postgres: b.dsn, NATS: b.nats.URL(), Space: space})
	if err != nil {
		return 0, 0, err
	}
	defer rt.Close()
	f, err := linear(10)
	if err == nil {
		err = rt.Deploy(ctx, f)
	}
	if err != nil {
		return 0, 0, err
	}
	config, err := json.Marshal(map[string]string{"Postgres": b.dsn, "NATS": b.nats.URL(), "Space": space})
	if err != nil {
		return 0, 0, err
	}
	var processes [2]*exec.Cmd
	for i := range processes {
		p := exec.CommandContext(ctx, os.Args[0])
		p.Env, p.Stderr = append(os.Environ(), workerVar+"="+string(config)), os.Stderr
		if _, err := p.StdinPipe(); err != nil {
			return 0, 0, err
		}
		if err := p.Start(); err != nil {
			return 0, 0, err
		}
		defer func() { _ = p.Process.Kill(); _ = p.Wait() }()
		processes[i] = p
	}
	if err := b.warm(ctx, rt); err != nil {
		return 0, 0, err
	}
	return underKill(ctx, rt, processes[1])
}

// underKill drives the jobs, kills the process, and gives the p99 of the jobs that had
// ended by then and the longest of all.
func underKill(ctx context.Context, rt *quipu.Runtime, victim *exec.Cmd) (usual, longest time.Duration, err error) {
	began := time.Now()
	var mu sync.Mutex
	var before []time.Duration
	var failed error
	var callers sync.WaitGroup
	for caller := range killCallers {
		callers.Go(func() {
			for n := 0; time.Since(began) < killAfter+killLonger; n++ {
				start := time.Now()
				job, err := rt.Start(ctx, "w", fmt.Sprintf("%d-%d", caller, n), nil)
				if err == nil {
					_, err = rt.Wait(ctx, job)
				}
				took := time.Since(start)
				mu.Lock()
				if time.Since(began) < killAfter {
					before = append(before, took)
				}
				longest = max(longest, took)
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	time.Sleep(time.Until(began.Add(killAfter)))
	if err := victim.Process.Kill(); err != nil {
		return 0, 0, err
	}
	callers.Wait()
	if len(before) == 0 {
		return 0, 0, errors.Join(failed, errors.New("no job had ended before the kill"))
	}
	slices.Sort(before)
	return before[len(before)*99/100], longest, failed
}
