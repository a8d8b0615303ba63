package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/flow"
)

const (
	// lookEvery is the pause between two looks at the flow files.
	lookEvery = 300 * time.Millisecond
	// maxEdits bounds the versions that edits of one version get.
	maxEdits = 10_000
)

// watch deploys flow files as they are edited (worker dev --watch). It looks at their times, so that it
// needs nothing of the file system. A file is read once it has stood still from one look to the next.
type watch struct {
	*process
	rt   *quipu.Runtime
	read map[string]stamp // as each file was when it was read
	seen map[string]stamp // as it was at the last look
	// deployed are the files of which a version is: those that were there at first, which the process deployed
	// when it began, and those that were read without a fault since.
	deployed map[string]bool
}

// stamp is what changes when a file is written.
type stamp struct {
	modified time.Time
	size     int64
}

// watchFlows looks until ctx ends. It reads every file once at first, because one may have been edited
// since the process read them.
func (p *process) watchFlows(ctx context.Context, rt *quipu.Runtime) {
	w := &watch{process: p, rt: rt, read: map[string]stamp{}, deployed: map[string]bool{}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := w.look()
		if err != nil {
			w.log.Warn("the flow files cannot be looked at", "error", err)
			continue
		}
		for path, s := range now {
			if w.seen == nil {
				w.deployed[path] = true
			}
			if s == w.seen[path] && s != w.read[path] {
				w.read[path] = s
				w.edited(ctx, path)
			}
		}
		w.seen = now
	}
}

func (w *watch) look() (map[string]stamp, error) {
	paths, err := flowPaths(w.opts.flows)
	now := make(map[string]stamp, len(paths))
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil { // one that was just removed is none
			now[path] = stamp{info.ModTime(), info.Size()}
		}
	}
	return now, err
}

// before says what new jobs take after a fault in a file: nothing of one that never was deployed.
func (w *watch) before(path string) string {
	if w.deployed[path] {
		return ": new jobs go on with the version before"
	}
	return ", and no version of it was before: mend it, and it is deployed"
}

// edited deploys a file, or prints its faults: then new jobs go on with the version before.
func (w *watch) edited(ctx context.Context, path string) {
	text, err := os.ReadFile(path)
	var f *flow.Flow
	if err == nil {
		f, err = flow.Parse(path, text)
	}
	if err == nil {
		err = deployEdit(ctx, w.rt, f)
	}
	if err == nil {
		w.deployed[path] = true
		return
	}
	if ctx.Err() == nil {
		fmt.Fprintf(w.err, "%v\nworker: %s was not deployed%s\n", err, path, w.before(path))
	}
}

// deployEdit deploys a flow and lets new jobs take it. Where its version is deployed with other content, it
// gets one of its own, such as 1-dev.3: the first that is free, or that has this content.
func deployEdit(ctx context.Context, rt *quipu.Runtime, f *flow.Flow) error {
	edit := f
	for n := 1; ; n++ {
		err := rt.Deploy(ctx, edit)
		if err == nil {
			return rt.Operator().Activate(ctx, edit.Name(), edit.Version(), "worker dev")
		}
		if !errors.Is(err, quipu.ErrVersionTaken) || n > maxEdits {
			return err
		}
		if edit, err = withVersion(f, fmt.Sprintf("%s-dev.%d", f.Version(), n)); err != nil {
			return err
		}
	}
}

// withVersion is the flow under another version.
func withVersion(f *flow.Flow, version string) (*flow.Flow, error) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(f.Canonical(), &members)
	if err == nil {
		members["version"], err = json.Marshal(version)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(members)
	}
	if err != nil {
		return nil, err
	}
	return flow.Parse(f.Name()+".json", text)
}
