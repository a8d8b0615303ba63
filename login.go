package quipu

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/internal/store"
)

// ErrLogin says that the database does not let this login in, or that the login has no right to
// what was asked (S8); the error says which, and what to do. It is an ErrUnavailable: nothing was
// done. But calling again does not help until somebody has changed that.
var ErrLogin = store.ErrLogin

// decides says whether this login decides and commits by itself, as that of an engine, an operator
// or the owner does: it may read the keys of the space. Those of clients and workers leave that to
// the engines (S8).
func (rt *Runtime) decides() bool { return rt.keys.Ring().Derives() }

// covers returns an ErrLogin about an act that nobody does for a login that does not decide.
func (rt *Runtime) covers(act string) error {
	if rt.decides() {
		return nil
	}
	return store.Login(fmt.Sprintf("%s needs the rights of an operator or an engine of the space %s, and this login has those of a client or a worker at most: "+
		"use another login, or give it the role (`quipu grant operator LOGIN`)", act, rt.cfg.Space))
}

// mayServe returns an ErrLogin about topics whose requests this login may not see: they would be taken,
// and wait.
func (rt *Runtime) mayServe(ctx context.Context) error {
	lacks, err := rt.lacks(ctx)
	if err != nil || len(lacks) == 0 {
		return err
	}
	return store.Login(fmt.Sprintf("the login %s may not serve %s: bind it to them (`quipu --space %s grant worker %s %s`), or serve others "+
		"(`worker --no-builtins` serves none of http, echo, sleep and fail)",
		rt.login, strings.Join(lacks, ", "), rt.cfg.Space, rt.login, strings.Join(lacks, " ")))
}

// lacks lists the topics with a handler that this login is not bound to. One that decides needs no
// binding.
func (rt *Runtime) lacks(ctx context.Context) ([]string, error) {
	served := rt.topics()
	if len(served) == 0 || rt.decides() || rt.login == "" {
		return nil, nil
	}
	own, err := rt.store.OwnTopics(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(served), func(topic string) bool { return slices.Contains(own, topic) }), nil
}

// withdraw stops serving the topics that the login has lost since, or all of them where engines have another
// number of lanes by now, so that they would not get the answers. It says so, to people and in what other
// processes list.
func (rt *Runtime) withdraw(ctx context.Context, before []string) (lost []string, err error) {
	lost = before
	lacks, err := rt.lacks(ctx)
	if err != nil {
		return before, err
	}
	why := fmt.Errorf("its login %s has lost it: give it back (`quipu --space %s grant worker %[1]s TOPIC`)", rt.login, rt.cfg.Space)
	if other := rt.sameLanes(ctx); other != nil && !slices.Contains(rt.cfg.Roles, RoleEngine) {
		lacks, why = rt.topics(), other
	}
	w := rt.serving.Load()
	for _, topic := range lacks {
		if w == nil || slices.Contains(lost, topic) {
			continue
		}
		w.Withdraw(topic)
		lost = append(lost, topic)
		rt.cfg.Logger.Error("this process serves a topic no more, until it is started again", "topic", topic, "error", why)
	}
	if id, alive := rt.session.Current(); alive && len(lost) > len(before) {
		err = rt.store.Withdraw(ctx, id, lost)
	}
	return lost, err
}
