package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/testkit/devtest"
	"github.com/quipu-journal/quipu/internal/testkit/soak"
)

// The parts with several processes start this program.
func TestMain(m *testing.M) {
	if config := os.Getenv(childVar); config != "" {
		if err := runChild(context.Background(), config, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	devtest.Main(m)
}

// lines are what the parts print.
var lines = map[string][]string{
	"floors":   {"floor (a)", "floor (b)", "floor (c)"},
	"w1":       {"W1, 1 caller ", "W1, 200 callers ", "W1, 1000 callers "},
	"w10":      {"W10, 1 caller ", "W10, 200 callers ", "W10, 1000 callers ", "all by JetStream ", "no hot states "},
	"fan":      {"fan of 100 activities, 10 callers "},
	"function": {"function without calls, 1 caller ", "function of 10 Guarded calls, 200 callers ", "function of 10 Idempotent calls, 200 callers ", "function of 10 Tx calls, 200 callers "},
	"signals":  {"signals to waiting jobs, 200 callers "},
	"trees":    {"trees of 1 + 10 + 100 awaits, 20 callers "},
	"long":     {"one job of 5 steps "},
	"steady": {
		"W10, 200 callers, 100 jobs stored ", "W10, WAL per job, 100 jobs stored ", "W10, 100 jobs stored ÷ none ",
		"a checkpoint every two: slowest ÷ median ", "a checkpoint every two: WAL, most ÷ least ",
	},
	"retention": {"W10, 200 callers, retention running ÷ not ", "retention: jobs removed ÷ jobs that end meanwhile "},
	"processes": {"3 processes ÷ 1, W10, 198 callers ", "3 processes ÷ 1, W10, 999 callers "},
	"kill":      {"kill -9 of one of two workers: longest job "},
	"costs":     {"W10, 200 callers, MACs, all by JetStream ", "W10, 200 callers, traces from the journal ", "W10, 200 callers, live traces "},
	"idle":      {"queries of an idle process "},
	"worst": {
		"jobs beside 1 kB for a recursive schema ÷ alone ", "jobs beside 80 kB of each and filter ÷ alone ", "jobs beside 109 kB of lists ÷ alone ",
		"jobs beside a page of the console, followed by 8 ÷ alone ", "jobs beside 10000 requests without a token ÷ alone ",
	},
	"backlog": {"backlog of 50 jobs of one step ", "backlog of 50 jobs of one step, memory "},
}

// The parts run and print their lines; how large the figures are is of no interest here.
// A soak runs all, and the plots.
func TestPartsPrintTheirLines(t *testing.T) {
	t.Parallel()
	parts, plots := []string{"floors", "w1", "signals", "steady", "idle"}, t.TempDir()
	args := []string{"-scale", "0.0005"}
	if soak.On() {
		parts, args = slices.Sorted(maps.Keys(lines)), append(args, "-plot", plots)
	} else {
		args = append(args, "-only", strings.Join(parts, ","))
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, io.MultiWriter(&out, t.Output())))
	report := out.String()
	for _, part := range parts {
		for _, line := range lines[part] {
			require.Contains(t, report, line)
		}
	}
	require.NotContains(t, report, "NaN")
	require.NotContains(t, report, "Inf")
	if soak.On() {
		for _, name := range []string{"throughput.svg", "latency.svg"} {
			svg, err := os.ReadFile(filepath.Join(plots, name))
			require.NoError(t, err)
			wellFormed(t, svg)
		}
	}
}

func TestWrongPartsAreRefused(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-only", "w1,w2"}, io.Discard)
	require.ErrorContains(t, err, "w2")
	require.ErrorContains(t, run(t.Context(), []string{"-only", "plot"}, io.Discard), "-plot DIR")
	require.ErrorContains(t, run(t.Context(), []string{"-only", "w1", "-plot", t.TempDir()}, io.Discard), "the part plot")
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	l := laps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	require.Equal(t, time.Duration(6), l.quantile(0.5))
	require.Equal(t, time.Duration(10), l.quantile(0.99))
	require.Equal(t, time.Duration(1), l[:1].quantile(0.99))
}

// A closed loop gives each number once, to no more callers at a time than there are.
func TestClosedLoop(t *testing.T) {
	t.Parallel()
	busy, seen := make(chan struct{}, 3), make(chan int, 100)
	took, err := closed(t.Context(), 3, upTo(100), func(_ context.Context, n int) error {
		select {
		case busy <- struct{}{}:
		default:
			return errors.New("a fourth caller")
		}
		seen <- n
		<-busy
		return nil
	})
	require.NoError(t, err)
	require.Len(t, took, 100)
	require.IsNonDecreasing(t, took)
	close(seen)
	sum := 0
	for n := range seen {
		sum += n
	}
	require.Equal(t, 99*100/2, sum)
}

func TestAxesReachTheirValues(t *testing.T) {
	t.Parallel()
	for most, ticks := range map[float64][]float64{
		1_000_000: {0, 200_000, 400_000, 600_000, 800_000, 1_000_000},
		8300:      {0, 2000, 4000, 6000, 8000, 10_000},
		7:         {0, 2, 4, 6, 8},
	} {
		a := axis{}
		a.span([]float64{0, most})
		require.Equal(t, ticks, a.ticks)
	}
	a := axis{log: true}
	a.span([]float64{3, 270})
	require.Equal(t, []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}, a.ticks)
	require.InDelta(t, 0, a.place(1, 0, 100), 0.1)
	require.InDelta(t, 37.1, a.place(10, 0, 100), 0.1)
	exact := axis{log: true}
	exact.span([]float64{1, 1000})
	require.InDelta(t, 1000, exact.to, 0, "no tick beyond the last value that is one")
}

func TestChartSaysWhatItShows(t *testing.T) {
	t.Parallel()
	c := chart{
		title: "Time & load", sub: "2 × CPU", x: axis{label: "callers", log: true}, y: axis{label: "ms", log: true},
		series: []series{{"p50", []point{{1, 8}, {1000, 300}}}, {"p99", []point{{1, 12}, {1000, 1500}}}},
	}
	svg, err := c.svg()
	require.NoError(t, err)
	wellFormed(t, svg)
	for _, said := range []string{"Time &amp; load", "2 × CPU", ">callers<", ">ms<", ">p50<", ">p99<", ">1 000<", "prefers-color-scheme: dark"} {
		require.Contains(t, strings.ReplaceAll(string(svg), "\u2009", " "), said)
	}
}

func wellFormed(t *testing.T, document []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(document)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}
