package replay

import (
	"crypto/sha256"
	"fmt"
	"iter"

	"github.com/quipu-journal/quipu/journal"
)

// Copy is what a resuming job says to have taken over: the entry that says so, the entry that
// it names, and the sum of what was taken.
type Copy struct {
	Chain journal.GUID
	Seq   int64
	journal.Taken
	// Sum is zero for an effect that is taken over without a result; Key is the effect's key.
	Sum, Key journal.Digest

	begun, met bool
}

// bornLaw checks what the first entry says of the job that it resumes, or goes on from (V11).
func (a *auditor) bornLaw(e *journal.Entry) {
	x := e.From
	switch {
	case x == nil || e.Kind != journal.KindCreated:
		if x != nil {
			a.at(V11, e, "an entry of kind %s resumes job %s", e.Kind, x.Job)
		}
	case e.Parent != nil:
		a.at(V11, e, "a job with a parent resumes job %s", x.Job)
	case x.Fork != nil && (x.Fork.Job.IsZero() || x.Fork.At < 1 || x.Fork.Generation < 1):
		a.at(V11, e, "it goes on from entry %d of job %s of generation %d", x.Fork.At, x.Fork.Job, x.Fork.Generation)
	case x.Forks():
		if f := x.Fork; f == nil || f.Job != x.Job || f.Generation != x.Generation || f.At >= x.Head.Seq ||
			x.Activity != "" || len(x.Children) > 0 || x.RootGeneration != 0 {
			a.at(V11, e, "a fork of job %s does not say which entry before %d it goes on from, or says more", x.Job, x.Head.Seq)
		}
	case x.Job.IsZero() || x.Root.IsZero() || x.Generation >= e.Generation || x.RootGeneration < 1 ||
		x.RootGeneration > x.Generation || x.Head.Seq < 1:
		a.at(V11, e, "generation %d resumes job %s of generation %d at entry %d, the first of which is job %s of generation %d",
			e.Generation, x.Job, x.Generation, x.Head.Seq, x.Root, x.RootGeneration)
	}
}

// resumedLaw checks that a job is resumed only after it failed or was interrupted, and only
// once (V15). Another may go on from an entry of it at any time.
func (a *auditor) resumedLaw(e *journal.Entry) {
	if e.Kind == journal.KindForked {
		if e.Next.IsZero() || e.Operator == nil {
			a.at(V15, e, "a job goes on from an entry of this one, and it is not said by whom and as what")
		}
		return
	}
	if e.Kind != journal.KindResumed {
		if !e.Next.IsZero() {
			a.at(V15, e, "an entry of kind %s names job %s as the next", e.Kind, e.Next)
		}
		return
	}
	j := a.job
	switch {
	case e.Next.IsZero() || e.Operator == nil:
		a.at(V15, e, "the job is resumed, and it is not said by whom and as what")
	case j.State != journal.JobFailed && j.State != journal.JobInterrupted || j.TasksAt == 0:
		a.at(V15, e, "the job is resumed as job %s while it is %s", e.Next, j.State)
	case !j.Next.IsZero():
		a.at(V15, e, "the job is resumed as job %s, and before as job %s", e.Next, j.Next)
	}
}

// takenLaw checks that only a resuming job or a fork takes something over, and records what was
// taken (V11).
func (a *auditor) takenLaw(e *journal.Entry) {
	if x := e.Response; x != nil && x.Taken != nil {
		a.taken(e, x.Taken, sumOf(x.Code, x.Output, x.Error))
	}
	if x := e.Result; x != nil && x.Taken != nil {
		a.taken(e, x.Taken, sumOf(x.Code, x.Output, x.Error))
	}
	if x := e.Effect; x != nil && x.Taken != nil {
		sum := journal.Digest{}
		if e.Kind == journal.KindEffectCompleted {
			sum = ResultDigest(x.Result, x.Error)
		}
		a.taken(e, x.Taken, sum)
	}
}

func (a *auditor) taken(e *journal.Entry, x *journal.Taken, sum journal.Digest) {
	from := a.job.From
	switch {
	case from == nil:
		a.at(V11, e, "entry %d of generation %d is taken over by a job that resumes none", x.Seq, x.Generation)
	case x.Forked:
		f := from.Fork
		if f == nil || !x.Chain.IsZero() || e.Effect != nil || x.Generation != f.Generation || x.Seq < 1 ||
			x.Seq > f.At {
			a.at(V11, e, "entry %d of generation %d is taken over from the job that the fork goes on from, which it does not cover", x.Seq, x.Generation)
			return
		}
		a.copies = append(a.copies, Copy{Chain: e.Chain, Seq: e.Seq, Taken: *x, Sum: sum})
	case from.Forks():
		a.at(V11, e, "entry %d of generation %d is taken over by a fork, which resumes none", x.Seq, x.Generation)
	case x.Generation < 1 || x.Seq < 1 || e.Effect != nil && x.Chain.IsZero(),
		(x.Chain.IsZero() || e.Effect != nil) && (x.Generation < from.RootGeneration || x.Generation > from.Generation):
		a.at(V11, e, "entry %d of generation %d is taken over by a job that resumes generations %d to %d", x.Seq, x.Generation, from.RootGeneration, from.Generation)
	default:
		c := Copy{Chain: e.Chain, Seq: e.Seq, Taken: *x, Sum: sum}
		if e.Effect != nil {
			c.Key = e.Effect.Key
		}
		a.copies = append(a.copies, c)
	}
}

// sumOf is the sum by which a copy is compared with its original: over the code, the digest of
// the output, and the error without its stack.
func sumOf(code int, output []byte, failure *journal.Failure) journal.Digest {
	digest := journal.Digest{}
	if output != nil {
		digest = sha256.Sum256(output)
	}
	return sumOver(code, digest, failure)
}

func sumOver(code int, output journal.Digest, failure *journal.Failure) journal.Digest {
	h := newHasher()
	h.number(int64(code))
	h.bytes(output[:])
	h.bool(failure != nil)
	if failure != nil {
		h.text(failure.Class)
		h.text(failure.Message)
		h.bytes(failure.Data)
	}
	return h.sum()
}

// HandOver checks what the report's job has taken over from another job, whose entries it
// reads: an earlier generation, or a child that was waited for (V11). The violation is one of
// the report's job; nil: there is none. Errors are those of reading entries.
func (r *Report) HandOver(of Header, entries iter.Seq2[journal.Record, error]) (*Violation, error) {
	wanted := r.wanted(of)
	for rec, err := range entries {
		if err != nil {
			return nil, err
		}
		if wanted[rec.Chain] == nil && !r.handedOver(of, rec) {
			continue
		}
		rec.Job = of.Job
		e, err := journal.Decode(rec)
		if err != nil {
			return nil, fmt.Errorf("entry %d of chain %s of job %s: %w", rec.Seq, rec.Chain, of.Job, err)
		}
		if r.handedOver(of, rec) &&
			(e.Kind != r.handsOver() || e.Next != r.Header.Job || rec.Hash != r.From.Head.Hash) {
			return r.broken(journal.MainChain, 1, "entry %d of job %s, which it resumes, does not hand over to it", rec.Seq, of.Job), nil
		}
		for _, c := range wanted[rec.Chain] {
			c.meet(e)
		}
	}
	for _, chain := range sortedGUIDs(wanted) {
		for _, c := range wanted[chain] {
			if !c.met {
				return r.broken(c.Chain, c.Seq, "entry %d of generation %d has not what is taken over from it", c.Taken.Seq, c.Generation), nil
			}
		}
	}
	return nil, nil
}

// handedOver reports whether the record is the entry by which the job was handed over.
func (r *Report) handedOver(of Header, rec journal.Record) bool {
	return r.From != nil && r.From.Job == of.Job && rec.Chain.IsZero() && rec.Seq == r.From.Head.Seq
}

// handsOver is the kind of the entry by which the job was handed over.
func (r *Report) handsOver() journal.Kind {
	if r.From.Forks() {
		return journal.KindForked
	}
	return journal.KindResumed
}

func (r *Report) broken(chain journal.GUID, seq int64, format string, args ...any) *Violation {
	return &Violation{Check: V11, Chain: chain, Seq: seq, Message: fmt.Sprintf(format, args...)}
}

// wanted lists the copies to look for in the other job's journal, by its chains.
func (r *Report) wanted(of Header) map[journal.GUID][]*Copy {
	out := map[journal.GUID][]*Copy{}
	for i := range r.Copies {
		c := &r.Copies[i]
		chain := c.Taken.Chain
		switch {
		case c.Chain.IsZero() && chain == journal.GUID(of.Job): // of a child
			chain = journal.MainChain
		case c.Taken.Forked:
			if r.From == nil || r.From.Fork == nil || r.From.Fork.Job != of.Job {
				continue
			}
		case c.Chain.IsZero() && !chain.IsZero() || of.Key != r.Header.Key || c.Generation != of.Generation:
			continue
		}
		c.met = false
		out[chain] = append(out[chain], c)
	}
	return out
}

// meet compares the copy with an entry of the chain it was taken from.
func (c *Copy) meet(e *journal.Entry) {
	switch x := e.Effect; {
	case x != nil:
		known := e.Seq == c.Taken.Seq || c.begun
		c.begun = known && x.Key == c.Key
		c.met = c.met || c.begun && (c.Sum == journal.Digest{} || c.Sum == ResultDigest(x.Result, x.Error))
	case e.Seq != c.Taken.Seq:
	default:
		for _, sum := range sums(e) {
			c.met = c.met || c.Sum == sum
		}
	}
}

// sums are the sums of what an entry may hold: a response, what the engine made of it, the
// input or the output of the job.
func sums(e *journal.Entry) (all []journal.Digest) {
	if x := e.Response; x != nil && !x.Ref.IsZero() {
		all = append(all, sumOver(x.Code, x.Ref, x.Error))
	} else if x != nil {
		all = append(all, sumOf(x.Code, x.Output, x.Error))
	}
	x := resultOf(e)
	all = append(all, sumOf(x.Code, x.Output, failureOf(e)))
	if x := e.Close; x != nil {
		all = append(all, sumOf(x.Code, x.Output, x.Error))
	}
	return all
}

// Violate adds a violation that was found by comparison with other journals.
func (r *Report) Violate(v *Violation) {
	if r.First == nil {
		r.First = v
	}
	for i := range r.Checks {
		if x := &r.Checks[i]; x.Check == v.Check && x.Status != Violated {
			x.Status, x.Violation = Violated, v
		}
	}
}

// Unproved notes why a part of the hand-over could not be compared.
func (r *Report) Unproved(why string) {
	for i := range r.Checks {
		if x := &r.Checks[i]; x.Check == V11 && x.Status == Proved && x.Note == "" {
			x.Note = why
		}
	}
}
