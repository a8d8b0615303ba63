package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// Limits that Preflight requires of the server.
const (
	// MinMaxPayload is the lowest max_payload: with less, the engine's own messages would
	// not fit.
	MinMaxPayload = 8 << 10
	// InlinePayload is enough for a request with its input (T4: 256 KiB) and envelope.
	// Below it Preflight warns that inputs go by reference.
	InlinePayload = 256<<10 + 16<<10
)

// preflightWait bounds Preflight when ctx has no deadline.
const preflightWait = 15 * time.Second

// ErrPreflight is a server or stream that would break the promise, so the process must
// not start (4.4). The error names every problem and its remedy.
var ErrPreflight = errors.New("preflight refused")

// Report is the result of Preflight, for printing at start (4.4).
type Report struct {
	// ServerVersion of the connected NATS server.
	ServerVersion string
	// MaxPayload is the server's max_payload in bytes (T4).
	MaxPayload int
	// Streams that exist already; Ensure makes the others.
	Streams []StreamReport
	// Problems break the promise; with any of them Preflight fails.
	Problems []string
	// Warnings do not break it.
	Warnings []string
}

// StreamReport is one stream of the space.
type StreamReport struct {
	Name     string
	Replicas int
	MaxBytes int64
	Messages uint64
	Bytes    uint64
}

// Preflight checks JetStream, max_payload and the existing streams of the space (4.4);
// call it before Ensure. A process that makes no streams does not look at them. With problems the
// error wraps ErrPreflight and the report is still complete. Without an answer the error wraps
// transport.ErrUnavailable.
func (b *Bus) Preflight(ctx context.Context) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, preflightWait)
	defer cancel()
	if err := b.link.wait(ctx); err != nil {
		return Report{}, fmt.Errorf("preflight: no nats server at %s: %w: %w", redactURL(b.cfg.URL), transport.ErrUnavailable, b.away())
	}
	r := Report{ServerVersion: b.nc.ConnectedServerVersion(), MaxPayload: b.MaxPayload()}
	r.checkPayload()
	r.checkVersion()
	if b.cfg.LeaveStreams { // it may not look at them: the engines do
		return r, r.verdict()
	}
	if err := b.checkJetStream(ctx, &r); err != nil {
		return r, err
	}
	single := b.cfg.Replicas == 1 && len(r.Streams) < len(kinds) // the others are still to be made
	for _, s := range r.Streams {
		single = single || max(s.Replicas, b.cfg.Replicas) == 1
	}
	if cluster := b.nc.ConnectedClusterName(); single && cluster != "" { // a server alone has no more to give
		r.Warnings = append(r.Warnings, fmt.Sprintf("streams have one replica (R1) in the cluster %s: while that server is away no message moves, and what its disk loses the rows send again: --nats-replicas 3", cluster))
	}
	return r, r.verdict()
}

func (r *Report) checkPayload() {
	switch {
	case r.MaxPayload < MinMaxPayload:
		r.Problems = append(r.Problems, fmt.Sprintf("max-payload: max_payload is %d bytes, at least %d are needed: raise it in the server's configuration", r.MaxPayload, MinMaxPayload))
	case r.MaxPayload < InlinePayload:
		r.Warnings = append(r.Warnings, fmt.Sprintf("max_payload is %d bytes: requests carry inputs over that by reference", r.MaxPayload))
	}
}

// checkVersion warns about a server without priority groups (7.6).
func (r *Report) checkVersion() {
	var major, minor int
	if _, err := fmt.Sscanf(r.ServerVersion, "%d.%d", &major, &minor); err == nil && (major < 2 || major == 2 && minor < 11) {
		r.Warnings = append(r.Warnings, "nats-server "+r.ServerVersion+" gives the messages of a lane to all engines alike, which is slower: 2.11 or newer gives them to one")
	}
}

func (b *Bus) checkJetStream(ctx context.Context, r *Report) error {
	_, err := b.js.AccountInfo(ctx)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		r.Problems = append(r.Problems, "jetstream-off: JetStream is not enabled for this account: start the server with JetStream (nats-server -js) or enable it for the account")
		return nil
	}
	if err != nil {
		return ioError("preflight: JetStream account", err)
	}
	for _, kind := range kinds {
		name := b.streamName(kind)
		stream, err := b.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return ioError("preflight: stream "+name, err)
		}
		info := stream.CachedInfo()
		r.Streams = append(r.Streams, StreamReport{
			Name: name, Replicas: info.Config.Replicas, MaxBytes: info.Config.MaxBytes, Messages: info.State.Msgs,
			Bytes: info.State.Bytes,
		})
		want, _ := b.raised(info.Config, kind)
		for _, problem := range b.streamProblems(&want, kind) {
			r.Problems = append(r.Problems, "stream-settings: stream "+name+": "+problem)
		}
		for _, warning := range b.streamWarnings(&want) {
			r.Warnings = append(r.Warnings, "stream "+name+": "+warning)
		}
	}
	return nil
}

func (r *Report) verdict() error {
	if len(r.Problems) == 0 {
		return nil
	}
	errs := make([]error, len(r.Problems))
	for i, problem := range r.Problems {
		errs[i] = errors.New(problem)
	}
	return fmt.Errorf("%w: %w", ErrPreflight, errors.Join(errs...))
}
