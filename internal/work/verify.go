package work

import (
	"log/slog"
	"sync"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/internal/effect"
	"github.com/quipu-journal/quipu/internal/usercode"
	"github.com/quipu-journal/quipu/internal/wire"
	"github.com/quipu-journal/quipu/internal/work/port"
	"github.com/quipu-journal/quipu/journal"
)

// maxTold bounds the number of effects without a verifier that a process warns about.
const maxTold = 1000

// watch knows the verifiers of a runtime, and warns once about each Guarded effect
// without one (4.4).
type watch struct {
	verifiers map[string]port.Verifier
	log       *slog.Logger

	mu   sync.RWMutex
	told map[string]bool // by name
}

// verifier serves as effect.Config.Verifier.
func (w *watch) verifier(name string, class effects.Class) (effects.Verifier, effects.Mode) {
	if v, ok := w.verifiers[name]; ok {
		return v.Verifier, v.Mode
	}
	if class == effects.Guarded {
		w.tell(name)
	}
	return nil, ""
}

// bodies warns at the start about bodies of handlers. Effects within handlers are known
// only when they are called.
func (w *watch) bodies(handlers []*port.Handler) {
	for _, h := range handlers {
		_, _ = w.verifier(h.Topic, h.Class)
	}
}

func (w *watch) tell(name string) {
	w.mu.RLock()
	quiet := w.told[name] || len(w.told) >= maxTold
	w.mu.RUnlock()
	if quiet {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.told[name] {
		w.told[name] = true
		w.log.Warn("preflight warns", "effect", name, "warning",
			"it is guarded and has no verifier: where its outcome is unknown, it waits for a person (workers.Verify)")
	}
}

// doubtful is the response to an effect that waits for a person, or that its verifier
// contradicts (3.3); nil for every other error.
func doubtful(chain []error) *wire.Response {
	r := &wire.Response{Kind: journal.ResponseParked, Code: collation.CodeInternal}
	if parked, ok := usercode.As[*effects.ParkedError](chain); ok {
		r.Error = &wire.Failure{Class: wire.ClassParked, Message: usercode.Text(parked)}
	} else if confirm, ok := usercode.As[*effect.ConfirmError](chain); ok {
		r.Error = &wire.Failure{Class: wire.ClassConfirm, Message: confirm.Error(), Data: confirm.Data()}
	} else if misfit, ok := usercode.As[*effect.MisfitError](chain); ok {
		r.Error = &wire.Failure{Class: wire.ClassMisfit, Message: usercode.Text(misfit)}
	} else if refuted, ok := usercode.As[*effect.VerificationError](chain); ok {
		r.Kind = journal.ResponseTerminal
		r.Error = &wire.Failure{Class: wire.ClassVerification, Message: refuted.Error(), Data: refuted.Data()}
	} else if differs, ok := usercode.As[*effects.NondeterminismError](chain); ok && differs.Position != "" {
		r.Error = &wire.Failure{Class: wire.ClassNondeterminism, Message: differs.Error()}
	} else {
		return nil
	}
	r.Code = fitFailure(r.Error, r.Code)
	return r
}
