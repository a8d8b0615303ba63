package port

import "context"

// MaxAttempts bounds the outcomes "not done" of one effect (E5).
const MaxAttempts = 1000

// Call is a call of effects.Do or effects.DoTx, with its options. Types of package effects, which
// this one cannot import, stand here by what they are made of.
type Call struct {
	Name     string
	Class    string // an effects.Class
	Explicit string
	Keyed    bool   // Explicit is set
	Args     []byte // canonical, nil for none
	Once     bool
	Attempts int
	Verifier any    // an effects.Verifier; nil for none
	Mode     string // an effects.Mode, of Verifier
	Err      error  // about the first option that cannot be used
}

// Run is the run of a handler in a job.
type Run interface {
	// Do reads the result of the effect into what into points to: the recorded one, or that of
	// body, which is recorded. tx is the store's handle, only in class Tx.
	Do(ctx context.Context, c *Call, body func(ctx context.Context, tx any) (any, error), into any) error
}

// RunKey is the key of the Run in a context.
type RunKey struct{}

// RunOf is the run that ctx belongs to, nil outside a job (E14).
func RunOf(ctx context.Context) Run {
	run, _ := ctx.Value(RunKey{}).(Run)
	return run
}

type effectKey struct{}

// WithEffect returns the context for the body of the effect with that key.
func WithEffect(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, effectKey{}, key)
}

// EffectOf is the key of the effect that ctx runs in, "" outside of one.
func EffectOf(ctx context.Context) string {
	key, _ := ctx.Value(effectKey{}).(string)
	return key
}
