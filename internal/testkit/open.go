package testkit

import (
	"context"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/internal/below"
)

// Open is quipu.Open in a mode.
func Open(ctx context.Context, cfg quipu.Config, how below.Mode) (*quipu.Runtime, error) {
	rt, err := below.Open(ctx, cfg, how)
	if err != nil {
		return nil, err
	}
	return rt.(*quipu.Runtime), nil
}
