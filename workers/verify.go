package workers

import (
	"fmt"

	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
)

// Verify registers a verifier for every effect of that name in the handlers of the
// registry: an effects.Do, or the body of a handler with a Class, which is named after
// its topic (3.3); see effects.Verify. An effects.Verify option on an effect has
// precedence. Registry.Check returns mistakes.
func Verify(r *Registry, effectName string, v effects.Verifier, mode effects.Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fail := func(format string, a ...any) {
		r.errs = append(r.errs, fmt.Errorf("verifier of effect %.80q: "+format, append([]any{effectName}, a...)...))
	}
	_, twice := r.verifiers[effectName]
	switch {
	case effectName == "" || len(effectName) > wire.MaxEffectName:
		fail("its name has %d bytes: 1 to %d are allowed", len(effectName), wire.MaxEffectName)
	case usercode.IsNil(v):
		fail("it is nil")
	case !mode.Valid():
		fail("mode %.40q is none of strict, warn, human", string(mode))
	case twice:
		fail("it is registered twice")
	default:
		r.verifiers[effectName] = port.Verifier{Verifier: v, Mode: mode}
	}
}
