package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/early"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/transport"
)

// beginning counts the requests that begin early, and begins none.
type beginning struct {
	slots
	began int
}

var errNotBegun = errors.New("not begun")

func (s *beginning) Begin(*transport.Message, *early.Cause) (func(), error) {
	s.began++
	return nil, errNotBegun
}

// L4: from a message that was delivered or published before, nothing begins before its commit. The
// same holds for a loop that carries work singly.
func TestL4WhatCameTwiceCausesNothingEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again  bool
		policy policy
		began  int
	}{
		"the first delivery": {began: 1},
		"a later one":        {again: true},
		"on the aside":       {policy: policyWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, local := newWarmth(t), &beginning{}
			w.policy = c.policy
			own, err := w.st.OpenSession(t.Context(), store.Process{Name: "here", Lease: time.Minute})
			require.NoError(t, err)
			w.cfg.Local, w.cfg.Session = local, living(own.ID())
			row := w.begin("k")
			w.cfg.Early = early.NewTopics()
			w.cfg.Early.Serve("topic")
			m := response(&row)
			m.again = c.again
			_, err = w.transact(t.Context(), []item{m}, true)
			require.NoError(t, err)
			require.Equal(t, c.began, local.began)
		})
	}
}

// L4: a message says whether it came before.
func TestL4DeliveriesAndPublicationsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWarmth(t)
	row := w.begin("k")
	for n, again := range []bool{false, true} {
		row.Publication = 1 + n
		o := store.Outgoing{Row: row, Flow: w.ref}
		o.Row.Kind = "leg1"
		m, err := w.pub.message(t.Context(), &o)
		require.NoError(t, err)
		got, err := decode(&inBatchAnswer{msg: m})
		require.NoError(t, err)
		require.Equal(t, again, got.again)
	}
}
