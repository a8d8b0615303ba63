package access

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// TokenLook is how long a request goes on at most after its token was revoked or has ended, a
// stream included. While requests of a token are under way it is looked up so often, once for all
// of them.
const TokenLook = 2 * time.Second

// tokenWait bounds one look at a token: who asks while the database is away is told so.
const tokenWait = 3 * time.Second

// awayDetail is said of a token that could not be looked up.
const awayDetail = "the database of the space does not answer, and tokens are looked up there: nothing was done, try again in a moment"

// watch looks after a token while requests that came with it are under way.
type watch struct {
	token string
	who   Who
	ctx   context.Context // ends with the last of the requests
	end   context.CancelFunc
	timer *time.Timer
	ends  map[*http.Request]context.CancelCauseFunc
}

// while returns a context for a request that ends with its token, with the *Problem as its cause.
// The request calls done at its end. Without a token it ends with the request.
func (g *Guard) while(r *http.Request, token string, who Who) (ctx context.Context, done func()) {
	if token == "" {
		return r.Context(), func() {}
	}
	ctx, end := context.WithCancelCause(r.Context())
	g.watching.Lock()
	defer g.watching.Unlock()
	w := g.watches[token]
	if w == nil {
		w = &watch{token: token, who: who, ends: map[*http.Request]context.CancelCauseFunc{}}
		w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
		w.timer = time.AfterFunc(TokenLook, func() { g.look(w) })
		g.watches[token] = w
	}
	w.ends[r] = end
	return ctx, func() {
		g.watching.Lock()
		defer g.watching.Unlock()
		end(nil)
		if delete(w.ends, r); len(w.ends) == 0 && g.watches[token] == w {
			w.timer.Stop()
			w.end()
			delete(g.watches, token)
		}
	}
}

// look looks a token up again, and ends its requests if it does not hold any more. While it cannot
// be looked up they go on: what they read comes from the same database.
func (g *Guard) look(w *watch) {
	ctx, cancel := context.WithTimeout(w.ctx, tokenWait)
	who, holds, err := g.cfg.Tokens(ctx, w.token)
	cancel()
	g.watching.Lock()
	defer g.watching.Unlock()
	switch {
	case g.watches[w.token] != w: // the last of them has ended
	case err != nil || holds && g.seeing(who) == w.who:
		w.timer.Reset(TokenLook)
	default:
		ended := noToken()
		for _, end := range w.ends {
			end(ended)
		}
		w.end()
		delete(g.watches, w.token)
	}
}

// noToken is the problem of a token that does not hold.
func noToken() *Problem {
	return NewProblem(http.StatusUnauthorized, CodeUnauthenticated, "the token is none, was revoked, or has ended")
}

// ErrStopped is the cause with which the context of a request ends when its server stops.
var ErrStopped = errors.New("the server stops")
