package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Remains are what a closed job leaves to the job that resumes it.
type Remains struct {
	Job   collation.Job
	Input []byte // of the job

	flow  *flow.Flow
	from  *journal.From
	state *state
	close *journal.Entry
	was   *journal.From         // the job that this one resumed itself
	ended map[journal.JobID]int // by child: the code of its outcome
}

// RemainsOf reads a closed job and its journal, from one snapshot. The journal is read if fits
// returns no error. With an error the remains have the header of the job, if there is one.
func RemainsOf(
	ctx context.Context, r store.Reader, id journal.JobID, fits func(*store.Stored) error,
) (*Remains, error) {
	l := &Remains{state: newState(id), ended: map[journal.JobID]int{}}
	header := func(s *store.Stored) error {
		l.Job = s.Job
		return fits(s)
	}
	for e, err := range audited(ctx, r, id, header) {
		if err == nil {
			err = l.apply(e)
		}
		if err != nil {
			return l, err
		}
	}
	if l.close == nil {
		return l, errors.New("its journal has no end")
	}
	return l, nil
}

func (l *Remains) apply(e *journal.Entry) error {
	if err := l.state.apply(e); err != nil || !e.Chain.IsZero() {
		return err
	}
	if e.Kind == journal.KindCreated {
		l.Input, l.was = e.Input, e.From
	}
	if e.Close != nil && l.close == nil {
		l.close = e
	}
	if x := e.Response; x != nil && !x.Child.IsZero() {
		l.ended[x.Child] = x.Code
	}
	return nil
}

// Choose picks the activity of the job's flow to resume from, unless from names one, and completes
// from. The error says why the job cannot be resumed.
func (l *Remains) Choose(f *flow.Flow, from *journal.From) error {
	l.flow, l.from = f, from
	for key, i := range l.state.instances {
		if act, _ := l.flow.Activity(key.Activity); i.repeat && act != nil && i.ResultSeq > 0 {
			return fmt.Errorf("the hook %s takes signal after signal: what follows them cannot be taken over", act.Name)
		}
	}
	if l.from.Activity != "" {
		return l.named()
	}
	if l.state.closeState != journal.JobFailed {
		return nil // interrupted: activities without a result are done again
	}
	i := l.state.instances[collation.InstanceKey{Activity: l.close.Activity, DAD: collation.DAD(l.close.DAD)}]
	if i == nil || i.ResultSeq > 0 && i.Code == collation.CodeOK {
		return fmt.Errorf("no activity has failed, %s: name the one to go on from (--from), one of %s",
			failureText(l.close.Close), strings.Join(l.activities(), ", "))
	}
	l.from.Activity, l.from.DAD = l.close.Activity, l.close.DAD
	return nil
}

func failureText(c *journal.Close) string {
	if c.Error == nil {
		return "it was ended"
	}
	return c.Error.Message
}

// named checks the activity that was named.
func (l *Remains) named() error {
	act, ok := l.flow.Activity(l.from.Activity)
	switch {
	case !ok:
		return fmt.Errorf("flow %s version %s has no activity %.80q: it has %s",
			l.flow.Name(), l.flow.Version(), l.from.Activity, strings.Join(l.activities(), ", "))
	case act == l.flow.Trigger():
		return errors.New("from its trigger on everything would be done again: start a job with another key")
	}
	return nil
}

func (l *Remains) activities() (names []string) {
	for _, a := range l.flow.Activities() {
		if a != l.flow.Trigger() {
			names = append(names, a.Name)
		}
	}
	return names
}

// Children lists the children whose await got no success, with the instances that will wait for
// them again.
func (l *Remains) Children() (all []journal.FromChild) {
	for key, i := range l.state.instances {
		act, _ := l.flow.Activity(key.Activity)
		if act == nil || act.Type != flow.TypeAwait || i.Turn == 0 || !l.again(key, i) {
			continue
		}
		all = append(all, journal.FromChild{
			Activity: key.Activity, DAD: string(key.DAD), Job: collation.ChildID(i.Leg1, i.Turn),
		})
	}
	for start, p := range l.state.pauses {
		key := p.key
		i := l.state.instances[key]
		child := journal.JobID(start)
		if p.Kind != journal.PauseChild || i == nil || !l.again(key, i) || l.ended[child] == collation.CodeOK ||
			l.state.undone[p.request] {
			continue
		}
		ref := p.PauseRef
		all = append(all, journal.FromChild{
			Activity: key.Activity, DAD: string(key.DAD), Element: element(i, p.request), Of: &ref, Job: child,
		})
	}
	if l.was != nil { // also those that this job inherited and did not reach
		for _, x := range l.was.Children {
			if i := l.state.instances[collation.InstanceKey{
				Activity: x.Activity, DAD: collation.DAD(x.DAD),
			}]; i == nil || i.ResultSeq == 0 {
				all = append(all, x)
			}
		}
	}
	slices.SortFunc(all, func(a, b journal.FromChild) int { return slices.Compare(a.Job[:], b.Job[:]) })
	return all
}

// again says whether an instance is done again.
func (l *Remains) again(key collation.InstanceKey, i *instance) bool {
	act, _ := l.flow.Activity(key.Activity)
	return i.ResultSeq == 0 || collation.Again(l.flow, l.from, act, key.DAD, i.Code, false)
}

// element returns the index of a request in its list.
func element(i *instance, request journal.GUID) int {
	for n := range i.Count {
		if collation.RequestGUID(i.Leg1, n) == request {
			return n
		}
	}
	return 0
}
