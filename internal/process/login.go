package process

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/internal/store"
)

// Decides says whether this login decides and commits by itself, as that of an engine, an operator
// or the owner does: it may read the keys of the space. Those of clients and workers leave that to
// the engines (S8).
func (p *Process) Decides() bool { return p.Keys.Ring().Derives() }

// Covers returns an ErrLogin about an act that nobody does for a login that does not decide.
func (p *Process) Covers(act string) error {
	if p.Decides() {
		return nil
	}
	return store.Login(fmt.Sprintf("%s needs the rights of an operator or an engine of the space %s, and this login has those of a client or a worker at most: "+
		"use another login, or give it the role (`quipu grant operator LOGIN`)", act, p.cfg.Space))
}

// mayServe returns an ErrLogin about topics whose requests this login may not see: they would be taken,
// and wait.
func (p *Process) mayServe(ctx context.Context) error {
	lacks, err := p.lacks(ctx)
	if err != nil || len(lacks) == 0 {
		return err
	}
	return store.Login(fmt.Sprintf("the login %s may not serve %s: bind it to them (`quipu --space %s grant worker %s %s`), or serve others "+
		"(`worker --no-builtins` serves none of http, echo, sleep and fail)",
		p.login, strings.Join(lacks, ", "), p.cfg.Space, p.login, strings.Join(lacks, " ")))
}

// lacks lists the topics with a handler that this login is not bound to. One that decides needs no
// binding.
func (p *Process) lacks(ctx context.Context) ([]string, error) {
	served := p.topics()
	if len(served) == 0 || p.Decides() || p.login == "" {
		return nil, nil
	}
	own, err := p.Store.OwnTopics(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(served), func(topic string) bool { return slices.Contains(own, topic) }), nil
}

// withdraw stops serving the topics that the login has lost since, or all of them where engines have another
// number of lanes by now, so that they would not get the answers. It says so, to people and in what other
// processes list.
func (p *Process) withdraw(ctx context.Context, before []string) (lost []string, err error) {
	lost = before
	lacks, err := p.lacks(ctx)
	if err != nil {
		return before, err
	}
	why := fmt.Errorf("its login %s has lost it: give it back (`quipu --space %s grant worker %[1]s TOPIC`)", p.login, p.cfg.Space)
	if other := p.sameLanes(ctx); other != nil && !slices.Contains(p.cfg.Roles, RoleEngine) {
		lacks, why = p.topics(), other
	}
	w := p.serving.Load()
	for _, topic := range lacks {
		if w == nil || slices.Contains(lost, topic) {
			continue
		}
		w.Withdraw(topic)
		lost = append(lost, topic)
		p.cfg.Logger.Error("this process serves a topic no more, until it is started again", "topic", topic, "error", why)
	}
	if id, alive := p.session.Current(); alive && len(lost) > len(before) {
		err = p.Store.Withdraw(ctx, id, lost)
	}
	return lost, err
}
