package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/internal/store"
)

// maxFlowFiles bounds the files of a flows directory.
const maxFlowFiles = 10_000

// flowFile is a flow and the path of its file.
type flowFile struct {
	path string
	flow *flow.Flow
}

// readFlows reads the flows below dir, in the order of their paths. It prints the faults of all
// files to w, and then returns cli.ErrReported with codeFlows.
func readFlows(dir string, w io.Writer) ([]flowFile, error) {
	if dir == "" {
		return nil, nil
	}
	paths, err := flowPaths(dir)
	if err != nil {
		return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--flows: %w", cli.PathError(err)))
	}
	var flows []flowFile
	faulty := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--flows: %w", cli.PathError(err)))
		}
		f, err := flow.Parse(path, text)
		if err != nil {
			fmt.Fprintln(w, err)
			faulty++
			continue
		}
		flows = append(flows, flowFile{path, f})
	}
	if faulty > 0 {
		fmt.Fprintf(w, "worker: %d of %d flow files have faults; nothing was deployed\n", faulty, len(paths))
		return nil, cli.Exit(codeFlows, cli.ErrReported)
	}
	return flows, nil
}

func flowPaths(dir string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
			paths = append(paths, path)
		}
		if len(paths) > maxFlowFiles {
			return fmt.Errorf("%s holds more than %d flow files", dir, maxFlowFiles)
		}
		return nil
	})
	return paths, err
}

// deployFlows deploys the flows that are new to the space, and logs which flows got a new active
// version.
func (p *process) deployFlows(ctx context.Context, rt *quipu.Runtime) error {
	flows := p.flows
	deploy := func(f *flow.Flow) error { return rt.Deploy(ctx, f) }
	if p.watch {
		deploy = func(f *flow.Flow) error { return deployEdit(ctx, rt, f) }
	}
	for _, f := range flows {
		err := deploy(f.flow)
		switch {
		case errors.Is(err, store.ErrVersionTaken) && p.dev:
			return cli.Exit(codeFlows, fmt.Errorf("%s: %w, or let --watch deploy each edit as a version of its own", f.path, err))
		case errors.Is(err, store.ErrVersionTaken):
			return cli.Exit(codeFlows, fmt.Errorf("%s: %w", f.path, err))
		case err != nil:
			return fmt.Errorf("%s: %w", f.path, err)
		}
	}
	if len(flows) == 0 || p.watch {
		return nil // the login of a worker, or of retention, does not see flows (S8)
	}
	deployed, err := below.Of(rt).Flows(ctx)
	if err != nil {
		return err
	}
	for _, d := range deployed {
		ours := slices.ContainsFunc(flows, func(f flowFile) bool { return f.flow.Name() == d.Ref.Name })
		same := slices.ContainsFunc(flows, func(f flowFile) bool {
			return f.flow.Name() == d.Ref.Name && f.flow.Version() == d.Ref.Version
		})
		if d.Active && ours && !same {
			p.log.Warn("new jobs take a version that is not among the flows of this process: quipu activate changes that", "flow", d.Ref.Name, "active", d.Ref.Version)
		}
	}
	return nil
}
