package work

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/workers"
)

// init gives package workers its built-in handlers: they are written with it, so it cannot import them.
func init() {
	port.RegisterBuiltins = func(registry, builtins any) error {
		b := builtins.(workers.Builtins)
		reach, err := newReach(b.HTTPAllow, b.HTTPDeny)
		reach.own = b.HTTPOwn
		registerBuiltins(registry.(*workers.Registry), b, newHTTPTransport(reach))
		return err
	}
}

func registerBuiltins(r *workers.Registry, b workers.Builtins, outside http.RoundTripper) {
	client := &httpClient{client: http.Client{Transport: outside}, secrets: b.Secrets}
	workers.HandleRaw(r, "echo", echo, workers.Early())
	workers.HandleRaw(r, "sleep", sleep)
	workers.HandleRaw(r, "fail", fail, workers.Early())
	workers.Handle(r, "http", client.handle, workers.Early())
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func echo(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }

// sleep waits for the duration in "for", then returns its input. It holds its slot
// meanwhile; long waits belong in the flow.
func sleep(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
	var ask struct {
		For string `json:"for"`
	}
	if err := json.Unmarshal(in, &ask); err != nil {
		return nil, badInput("sleep", err)
	}
	d, err := time.ParseDuration(ask.For)
	if err != nil || d < 0 {
		return nil, badInput("sleep", fmt.Errorf("for: %.40q is no duration like 1.5s", ask.For))
	}
	if err := pause(ctx, d); err != nil {
		return nil, err
	}
	return in, nil
}

// fail ends with the code and message of its input. With "times" set it fails only on the
// first so many attempts; later ones return the input.
func fail(ctx context.Context, in json.RawMessage) (json.RawMessage, error) {
	ask := struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Times   int             `json:"times"`
		Data    json.RawMessage `json:"data"`
	}{Code: http.StatusInternalServerError, Message: "failed on request"}
	if err := json.Unmarshal(in, &ask); err != nil {
		return nil, badInput("fail", err)
	}
	if ask.Times > 0 && workers.Info(ctx).Attempt > ask.Times {
		return in, nil
	}
	if ask.Data != nil {
		return nil, workers.Fail(ask.Code, ask.Message, workers.Data(ask.Data))
	}
	return nil, workers.Fail(ask.Code, ask.Message)
}

func badInput(topic string, err error) error {
	return &workers.Error{Code: http.StatusBadRequest, Class: wire.ClassInput, Message: fmt.Sprintf("the input of %s is not what it takes: %v", topic, err)}
}
