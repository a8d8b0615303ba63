package memstore

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

func (s *Store) row(id journal.JobID, g journal.GUID) *collation.Row { return s.rows[id][g] }

// eachRow visits all rows, each with the job that it is addressed to; nil if that does not exist.
func (s *Store) eachRow() iter.Seq2[*job, *collation.Row] {
	return func(yield func(*job, *collation.Row) bool) {
		for id, rows := range s.rows {
			j := s.jobs[id]
			for _, r := range rows {
				if !yield(j, r) {
					return
				}
			}
		}
	}
}

// collect lists rows in the order of a time, then of their ids.
func (s *Store) collect(
	want func(*job, *collation.Row) bool, at func(*collation.Row) collation.Micros,
) []*collation.Row {
	var rows []*collation.Row
	for j, r := range s.eachRow() {
		if want(j, r) {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *collation.Row) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), compareIDs(a.Job, b.Job), compareIDs(a.GUID, b.GUID))
	})
	return rows
}

// putRow inserts or replaces a dispatch row. A replacement raises its Rev.
func (s *Store) putRow(u *undo, r *collation.Row) {
	if old := s.row(r.Job, r.GUID); old != nil && r.Rev <= old.Rev {
		r.Rev = old.Rev + 1
	}
	if s.rows[r.Job] == nil {
		put(u, s.rows, r.Job, map[journal.GUID]*collation.Row{})
	}
	put(u, s.rows[r.Job], r.GUID, r)
}

// insertRow inserts a dispatch row, which may be addressed to any job (T1).
func (s *Store) insertRow(u *undo, r *collation.Row) error {
	if s.row(r.Job, r.GUID) != nil {
		return lost("row %s of job %s exists", r.GUID, r.Job)
	}
	s.putRow(u, copyRow(r))
	return nil
}

// dropRow deletes an existing dispatch row.
func (s *Store) dropRow(u *undo, id journal.JobID, g journal.GUID) {
	if drop(u, s.rows[id], g); len(s.rows[id]) == 0 {
		drop(u, s.rows, id)
	}
}

// copyRow copies a row with its pauses, since a decision may mark them. Nobody changes the bytes.
func copyRow(r *collation.Row) *collation.Row {
	c := clone(r)
	if c != nil {
		c.Pauses = slices.Clone(c.Pauses)
	}
	return c
}

// ordered returns the row that orders a child. It is nil if the child has begun, or its start was
// cancelled or refused.
func (s *Store) ordered(child journal.JobID) *collation.Row {
	row := s.row(child, child.Start())
	if row == nil || row.Kind != journal.MessageStart || s.jobs[child] != nil {
		return nil
	}
	return row
}

// rowsOf lists the rows of a job and the starts of children that it awaits, by Origin.
func (s *Store) rowsOf(id journal.JobID) []*collation.Row {
	rows := slices.Collect(maps.Values(s.rows[id]))
	for _, r := range s.eachRow() {
		if r.Sender == id {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *collation.Row) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), compareIDs(a.GUID, b.GUID))
	})
	return rows
}

// outgoing returns a row with everything its message carries; without the job's fields if the job
// does not exist.
func (s *Store) outgoing(r *collation.Row) *store.Outgoing {
	o := &store.Outgoing{Row: *copyRow(r)}
	if j := s.living(r.Job); j != nil {
		o.JobKey, o.Generation, o.Flow, o.Trace = j.Key, j.Generation, j.Flow, j.Trace
		o.SetRoot(j.From)
	}
	return o
}

// moveRows inserts, replaces and deletes dispatch rows (T1), and cancels starts that nobody has
// handled (C15).
func (s *Store) moveRows(u *undo, p *collation.Plan) error {
	if err := moveEach(u, p.Insert, s.insertRow); err != nil {
		return err
	}
	for i := range p.Update {
		row := copyRow(&p.Update[i])
		old := s.row(p.Job, row.GUID)
		switch {
		case old == nil:
			return lost("row %s is gone", row.GUID)
		case row.Rev <= old.Rev:
			return lost("row %s has rev %d, the plan gives it %d", row.GUID, old.Rev, row.Rev)
		}
		s.putRow(u, row)
	}
	for _, g := range p.Delete {
		if s.row(p.Job, g) == nil {
			return lost("row %s is gone", g)
		}
		s.dropRow(u, p.Job, g)
	}
	for _, k := range p.CancelStarts {
		if r := s.row(k.Job, k.GUID); r == nil || r.Sender != p.Job {
			return lost("start %s was handled", k.GUID)
		}
		s.dropRow(u, k.Job, k.GUID)
	}
	for _, k := range p.Discard {
		if s.row(k.Job, k.GUID) != nil {
			s.dropRow(u, k.Job, k.GUID)
		}
	}
	return nil
}
