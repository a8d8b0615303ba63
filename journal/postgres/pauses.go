package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// storedPause is one pause in the pauses column, which holds a JSON array.
type storedPause struct {
	Kind     journal.PauseKind `json:"kind"`
	Name     string            `json:"name"`
	Position string            `json:"position"`
	GUID     string            `json:"guid"`
	Timeout  bool              `json:"timeout,omitempty"`
	Taken    bool              `json:"taken,omitempty"`
	Came     bool              `json:"came,omitempty"`
}

// encodePauses returns the column's value; nil, which is NULL, for none.
func encodePauses(pauses []collation.Pause) []byte {
	if len(pauses) == 0 {
		return nil
	}
	out := make([]storedPause, len(pauses))
	for i := range pauses {
		p := &pauses[i]
		out[i] = storedPause{p.Kind, p.Name, p.Position, p.GUID.String(), p.Timeout, p.Taken, p.Came}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("postgres: encode pauses: %v", err)) // strings and booleans cannot fail
	}
	return b
}

// decodePauses reads the column's value: errCorrupt unless this package wrote it.
func decodePauses(b []byte) ([]collation.Pause, error) {
	if b == nil {
		return nil, nil
	}
	var in []storedPause
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("%w: the pauses of a row: %w", errCorrupt, err)
	}
	out := make([]collation.Pause, len(in))
	for i := range in {
		p := &in[i]
		guid, err := journal.ParseGUID(p.GUID)
		if err != nil {
			return nil, fmt.Errorf("%w: the pauses of a row: %w", errCorrupt, err)
		}
		out[i] = collation.Pause{
			PauseRef: journal.PauseRef{Kind: p.Kind, Name: p.Name, Position: p.Position},
			GUID:     guid, Timeout: p.Timeout, Taken: p.Taken, Came: p.Came,
		}
	}
	if !bytes.Equal(encodePauses(out), b) {
		return nil, fmt.Errorf("%w: the pauses of a row: in another spelling", errCorrupt)
	}
	return out, nil
}

// Pauses lists what the durable function of a request has waited for, and still waits for (E12),
// in one trip. The row may still name a pause that has come, until step 2 removes it (1.7);
// Pauses does not list it as open.
func (s *Store) Pauses(ctx context.Context, job journal.JobID, request journal.GUID) ([]store.Pause, error) {
	var all []store.Pause
	came := map[journal.PauseRef]bool{}
	err := s.query(ctx, "pauses_of_request", func() { all = nil; clear(came) }, func(v row) error {
		if v.null(0) {
			stand, err := decodePauses(v[5])
			for i := range stand {
				if p := &stand[i]; !came[p.PauseRef] {
					all = append(all, store.Pause{PauseRef: p.PauseRef})
				}
			}
			return err
		}
		p := store.Pause{Seq: v.int(0), PauseRef: journal.PauseRef{
			Kind: journal.PauseKind(v.text(1)), Name: v.text(2), Position: v.text(3),
		}}
		e, err := s.sealed(job, v.bytes(4))
		if err != nil {
			return err
		}
		p.Response = e.Response
		came[p.PauseRef] = true
		all = append(all, p)
		return nil
	}, pUUID(job), pUUID(request))
	return all, err
}

// resolvedWrite is a pause that was resolved (E12).
type resolvedWrite struct {
	job journal.JobID
	*collation.ResolvedWait
}

func putResolved(c *columns, w resolvedWrite) {
	c.uuid(w.job)
	c.uuid(w.Request)
	c.uuid(w.GUID)
	c.text(string(w.Kind))
	c.text(w.Name)
	c.text(w.Position)
	c.int(w.Seq)
}
