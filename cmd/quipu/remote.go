package main

import (
	"context"
	"encoding/json"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/view"
)

// remotely are the commands that can ask the API.
const remotely = "deploy, activate, flows, start (one job), wait, ls, show, log, messages, why, replay, trace, top, export, signal, interrupt, resume, fork and dead"

// tokenVariable has the token for the API. It is no flag: others can read the flags of a process.
const tokenVariable = "QUIPU_TOKEN"

// remote is the source that has a token: the API.
type remote struct{ *api.Client }

func (r remote) Find(ctx context.Context, key string) (quipu.Job, error) {
	job, err := r.Job(ctx, key, view.Want{})
	if err != nil {
		return quipu.Job{}, err
	}
	return quipu.Job{ID: job.ID, Key: job.Key}, nil
}

func (r remote) Flow(ctx context.Context, name, version string) *flow.Flow {
	text, err := r.Definition(ctx, name, version)
	if err != nil {
		return nil
	}
	f, err := flow.FromCanonical(text)
	if err != nil {
		return nil
	}
	return f
}

func (r remote) Jobs(ctx context.Context, f quipu.JobFilter) (page quipu.JobPage, err error) {
	page.Jobs, page.Next, err = r.Client.Jobs(ctx, f)
	return page, err
}

func (r remote) Annotate(context.Context, []view.Summary) error { return nil }

func (r remote) Wait(ctx context.Context, job quipu.Job, untilParked bool) (json.RawMessage, error) {
	return r.Client.Wait(ctx, job.ID.String(), untilParked)
}

func (r remote) Signal(
	ctx context.Context, topic, key string, payload []byte, f *signalFlags,
) (api.Signalled, error) {
	s := api.SignalRequest{Topic: topic, Key: key, Payload: payload, Code: f.code, All: f.all}
	if !f.all {
		s.Keep = f.keep.String()
	}
	return r.Client.Signal(ctx, s, f.id)
}

func (r remote) Interrupt(ctx context.Context, key string, f *interruptFlags) (out api.Interrupted, err error) {
	job, err := r.Find(ctx, key)
	if err != nil {
		return out, err
	}
	return r.Client.Interrupt(ctx, job.ID, api.InterruptRequest{
		Code: f.code, Reason: f.reason, Descend: f.descend, NoThrow: f.noThrow,
	}, f.id)
}

func (r remote) Resume(ctx context.Context, key, from string, by decision) (out api.Resumed, err error) {
	job, err := r.Find(ctx, key)
	if err != nil {
		return out, err
	}
	return r.Client.Resume(ctx, job.ID, from, by.reason)
}

func (r remote) Fork(
	ctx context.Context, of journal.JobID, at int64, as string, by decision,
) (api.Forked, error) {
	return r.Client.Fork(ctx, of, at, as, by.reason)
}

// Deploy sends the canonical text: the file was read here.
func (r remote) Deploy(ctx context.Context, f *flow.Flow, activate bool) (*view.Deployed, error) {
	done, err := r.Client.Deploy(ctx, string(f.Canonical()), activate)
	return &done.Deployed, err
}
