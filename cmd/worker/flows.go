package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// maxFlowFiles bounds the files of a flows directory.
const maxFlowFiles = 10_000

// flowFile is a flow and where it stands.
type flowFile struct {
	path string
	flow *flow.Flow
}

// readFlows reads the flows below dir, in the order of their paths. Faults of all
// files are printed to w, and the error is cli.ErrReported with codeFlows.
func readFlows(dir string, w io.Writer) ([]flowFile, error) {
	if dir == "" {
		return nil, nil
	}
	paths, err := flowPaths(dir)
	if err != nil {
		return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--flows: %w", err))
	}
	var flows []flowFile
	faulty := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, cli.Exit(cli.CodeUsage, fmt.Errorf("--flows: %w", err))
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

// deployFlows deploys and activates what is new to the space. A version that was
// there stays as it is: a process that restarts with an old directory must not
// take new jobs back to an old version.
func deployFlows(ctx context.Context, st store.Store, flows []flowFile, log *slog.Logger) error {
	for _, f := range flows {
		ref := journal.FlowRef{Name: f.flow.Name(), Version: f.flow.Version(), Digest: journal.Digest(f.flow.Digest())}
		fresh, err := st.Deploy(ctx, ref, f.flow.Canonical())
		if errors.Is(err, store.ErrVersionTaken) {
			return cli.Exit(codeFlows, fmt.Errorf("%s: flow %s version %s: %w: give the changed flow a new version", f.path, ref.Name, ref.Version, err))
		}
		if err == nil && fresh {
			err = st.Activate(ctx, ref.Name, ref.Version)
		}
		if err != nil {
			return fmt.Errorf("deploy %s: %w", f.path, err)
		}
		if err := tellDeployed(ctx, st, ref, fresh, log); err != nil {
			return err
		}
	}
	return nil
}

func tellDeployed(ctx context.Context, st store.Store, ref journal.FlowRef, fresh bool, log *slog.Logger) error {
	active, _, err := st.ActiveFlow(ctx, ref.Name)
	if err != nil {
		return fmt.Errorf("flow %s: %w", ref.Name, err)
	}
	if active.Version != ref.Version {
		log.Warn("new jobs take another version: quipu activate changes that", "flow", ref.Name, "version", ref.Version, "active", active.Version)
		return nil
	}
	log.Info("flow deployed", "flow", ref.Name, "version", ref.Version, "new", fresh)
	return nil
}
