package replay

import (
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// ending lists the requests that the entry ends: that of its own answer, and those that its
// close cancels.
func (j *Job) ending(e *journal.Entry, f *facts) []journal.GUID {
	var out []journal.GUID
	if f.endsRequest(e) {
		out = append(out, f.rowID)
	}
	for _, g := range e.CancelledByClose {
		if row := j.Rows[g]; row != nil && row.Turn > 0 &&
			(row.Kind == journal.MessageRequest || row.Kind == journal.MessageAnswer) {
			out = append(out, g)
		}
	}
	return out
}

// undoes lists the jobs that an entry with a start may order to run compensations, with the
// request of each: the requests that the entry ends (3.5).
func (j *Job) undoes(e *journal.Entry, f *facts) map[journal.JobID]journal.GUID {
	if !slices.ContainsFunc(e.Dispatched, func(d journal.Dispatched) bool {
		return d.Kind == journal.MessageStart && !d.Job.IsZero()
	}) {
		return nil
	}
	out := make(map[journal.JobID]journal.GUID)
	for _, request := range j.ending(e, f) {
		out[journal.DeriveUndo(request)] = request
	}
	return out
}

// foldUndo records the order of a job that runs compensations; false: it is another start.
func (j *Job) foldUndo(e *journal.Entry, f *facts, d *journal.Dispatched) bool {
	request, ok := f.undoes[d.Job]
	if ok {
		j.Undos[request] = e.Seq
	}
	return ok
}
