package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/journal"
)

// processes sets three processes beside one: the same callers, spread over them, and
// the same cores.
func (b *bench) processes(ctx context.Context) error {
	for _, callers := range []int{198, 999} {
		rates := map[int][]float64{}
		for range b.scaled(3) {
			for _, n := range []int{1, 3} {
				rate, err := b.spread(ctx, callers, n)
				if err != nil {
					return err
				}
				rates[n] = append(rates[n], rate)
			}
		}
		one, three := median(rates[1]), median(rates[3])
		b.print(line{
			title("3 processes ÷ 1, W10", callers), three / one, "×",
			fmt.Sprintf("%s beside %s steps/s; aim ≥ 0.95", figure(three), figure(one)),
		})
	}
	return nil
}

// spread is the rate of callers in so many processes, each with its own.
func (b *bench) spread(ctx context.Context, callers, n int) (rate float64, err error) {
	jobs := max(1, b.enough(callers)/n)
	f, err := b.family(ctx, n, childConfig{Callers: callers / n, Jobs: jobs})
	if err != nil {
		return 0, err
	}
	defer f.leave(ctx)
	began := time.Now()
	for _, p := range f.children {
		if _, err := p.in.Write([]byte("go\n")); err != nil {
			return 0, err
		}
	}
	for _, p := range f.children {
		if err := p.await("done"); err != nil {
			return 0, err
		}
	}
	return float64(jobs*n*10) / time.Since(began).Seconds(), nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// kill measures the longest pause of a job when one of two worker processes is killed:
// callers start jobs of ten steps and wait for each, from a third process.
func (b *bench) kill(ctx context.Context) error {
	for range b.scaled(3) {
		if err := b.killed(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) killed(ctx context.Context) error {
	f, err := b.family(ctx, 2, childConfig{Work: 5 * time.Millisecond}) // so that a kill meets handlers
	if err != nil {
		return err
	}
	defer f.leave(ctx)
	before, after := b.during(3*time.Second), b.during(10*time.Second)
	began, failed := time.Now(), make(chan error, 1)
	go func() {
		err := sleep(ctx, before)
		if err == nil {
			err = f.children[1].Process.Kill()
		}
		failed <- err
	}()
	more := func(int) bool { return time.Since(began) < before+after }
	took, err := closed(ctx, 50, more, func(ctx context.Context, n int) error {
		return startAndWait(ctx, f.client, "w10", fmt.Sprintf("job-%d", n))
	})
	if err := errors.Join(err, <-failed); err != nil {
		return err
	}
	b.print(line{
		"kill -9 of one of two workers: longest job", took[len(took)-1].Seconds(), "s",
		fmt.Sprintf("p50 of %d jobs %s s; aim ≤ 4 s", len(took), figure(took.quantile(0.5).Seconds())),
	})
	return nil
}

// idle counts what a process asks of the database when there is nothing to do: the
// statements of its sessions, which the server of this run logs.
func (b *bench) idle(ctx context.Context) error {
	if b.log == "" {
		_, err := fmt.Fprintln(b.out, "queries of an idle process: counted in the log of a private Postgres, not with -postgres")
		return err
	}
	quiet := b.dsn
	b.dsn += "&log_statement=all"
	f, err := b.family(ctx, 1, childConfig{})
	b.dsn = quiet
	if err != nil {
		return err
	}
	defer f.leave(ctx)
	f.client.Close()
	if err := sleep(ctx, b.during(10*time.Second)); err != nil { // what a process does once, it has done
		return err
	}
	before, err := os.ReadFile(b.log)
	if err != nil {
		return err
	}
	during := b.during(20 * time.Second)
	if err := sleep(ctx, during); err != nil {
		return err
	}
	after, err := os.ReadFile(b.log)
	if err != nil {
		return err
	}
	asked := statement.FindAll(after[len(before):], -1)
	b.print(line{"queries of an idle process", float64(len(asked)) / during.Seconds(), "/s", "statements of all its sessions; aim ≤ 4"})
	return nil
}

// statement is the log's line of one.
var statement = regexp.MustCompile(`LOG:  (execute|statement)`)

// drained drains jobs that were all started before there was a process to run them. Its
// memory is to stay flat.
func (b *bench) drained(ctx context.Context) error {
	jobs := b.scaled(100_000)
	f, err := b.family(ctx, 0, childConfig{})
	if err != nil {
		return err
	}
	defer f.leave(ctx)
	for first := 0; first < jobs; first += quipu.MaxStarts {
		reqs := make([]quipu.StartRequest, min(quipu.MaxStarts, jobs-first))
		for i := range reqs {
			reqs[i] = quipu.StartRequest{Flow: "w1", Key: fmt.Sprintf("job-%d", first+i), Input: order}
		}
		results, err := f.client.StartMany(ctx, reqs)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
	}
	if err := f.spawn(ctx, childConfig{}); err != nil {
		return err
	}
	began := time.Now()
	memories, err := f.watch(ctx, jobs)
	if err != nil {
		return err
	}
	took := time.Since(began)
	name := fmt.Sprintf("backlog of %d jobs of one step", jobs)
	b.print(line{name, float64(jobs) / took.Seconds(), "jobs/s", ""})
	b.print(line{name + ", memory", slices.Max(memories), "MiB", fmt.Sprintf("at its tenths: %.0f", memories)})
	return nil
}

// watch is back when so many jobs have ended, with the memory of the process at each
// tenth of the way.
func (f *family) watch(ctx context.Context, jobs int) (memories []float64, err error) {
	for {
		asked := time.Now()
		counts, err := below.Of(f.client).Counts(ctx)
		if err != nil {
			return nil, err
		}
		if failed := counts[journal.JobFailed]; failed > 0 {
			return nil, fmt.Errorf("%d jobs failed", failed)
		}
		for len(memories) < 10 && int(counts[journal.JobCompleted]) >= jobs*(len(memories)+1)/10 {
			memories = append(memories, memory(strconv.Itoa(f.children[0].Process.Pid), "VmRSS"))
		}
		if len(memories) == 10 {
			return memories, nil
		}
		// Counting takes longer with more jobs: it is not to take part of the rate.
		if err := sleep(ctx, max(50*time.Millisecond, 20*time.Since(asked))); err != nil {
			return nil, err
		}
	}
}
