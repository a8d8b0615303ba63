package api

import (
	"net/http"

	"github.com/quipu-journal/quipu/api/access"
	"github.com/quipu-journal/quipu/journal/export"
)

// exportType is the media type of an export.
const exportType = "application/jsonl"

func (a *api) verify(w http.ResponseWriter, r *http.Request) error {
	id, err := a.reader.Find(r.Context(), r.PathValue("job"))
	if err != nil {
		return err
	}
	report, err := a.reader.Verify(r.Context(), id, a.build)
	if err != nil {
		return err
	}
	out := Verified{
		Key: report.Header.Key, Job: id.String(), State: string(report.State), OK: !report.Violated(),
		Entries: report.Counts.Entries,
		Head:    report.Head.Hash.String(), Checks: make([]Check, len(report.Checks)),
	}
	if report.First != nil {
		out.Violation = report.First.String()
	}
	for i, c := range report.Checks {
		out.Checks[i] = Check{Rule: string(c.Check), Title: c.Check.Title(), Status: string(c.Status), Note: c.Note}
	}
	return answer(w, http.StatusOK, out)
}

func (a *api) export(w http.ResponseWriter, r *http.Request) error {
	if who := access.Of(r.Context()); !who.Payloads {
		return access.NewProblem(http.StatusForbidden, access.CodeForbidden, "a journal has payloads, which "+who.Name+" may not see")
	}
	id, err := a.reader.Find(r.Context(), r.PathValue("job"))
	if err != nil {
		return err
	}
	out := &late{w: w}
	lines := export.NewWriter(out)
	err = a.reader.Export(r.Context(), id, lines)
	if err == nil {
		err = lines.Flush()
	}
	if err != nil && out.begun {
		panic(http.ErrAbortHandler) // so that the caller sees that it is cut off
	}
	return err
}

// late writes the head of an export with its first bytes, so that an error before them is a
// problem.
type late struct {
	w     http.ResponseWriter
	begun bool
}

// Write writes a part of the export.
func (l *late) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", exportType)
		l.w.WriteHeader(http.StatusOK)
	}
	return l.w.Write(p)
}
