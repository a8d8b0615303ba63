package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/quipu-journal/quipu/internal/inspect/spans"
	"github.com/quipu-journal/quipu/view"
)

// Sizes of a picture, in pixels.
const (
	svgRow   = 18
	svgNames = 260
	svgBars  = 700
	svgTimes = 80
	// maxSVGRows bounds the spans that a picture shows.
	maxSVGRows = 1000
)

// colours are the classes of bars by part: what runs, what waits, what went wrong.
func colour(s *view.Span) string {
	switch {
	case s.Failure != nil:
		return "failed"
	case s.Part == spans.PartJob || s.Part == spans.PartActivity:
		return "whole"
	case s.Part == spans.PartRun || s.Part == spans.PartEffect:
		return "runs"
	case s.Part == spans.PartQueued || s.Part == spans.PartBackoff || s.Part == spans.PartWait ||
		s.Part == spans.PartChild || s.Part == spans.PartParked:
		return "waits"
	}
	return "other"
}

// picture draws a tree as a timeline, without steps. What is still open ends with the last moment
// that is known.
func picture(w io.Writer, x *view.Tree) error {
	depths := x.Depths()
	type row struct {
		s     *view.Span
		depth int
	}
	var rows []row
	start, end := x.Spans[0].Start, x.Spans[0].End
	for i := range x.Spans {
		s := &x.Spans[i]
		end = max(end, s.Start, s.End)
		if s.Part != spans.PartStep && len(rows) < maxSVGRows {
			rows = append(rows, row{s, depths[i]})
		}
	}
	scale := float64(svgBars) / float64(max(1, end-start))
	var b strings.Builder
	width, height := svgNames+svgBars+svgTimes, svgRow*(len(rows)+1)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height, width, height)
	b.WriteString(`<style>.whole{fill:#94a3b8}.runs{fill:#16a34a}.waits{fill:#f59e0b}.failed{fill:#dc2626}.other{fill:#3b82f6}text{fill:#334155}` +
		`@media(prefers-color-scheme:dark){text{fill:#e2e8f0}}</style>` + "\n")
	for i, r := range rows {
		y := svgRow * i
		to := cmp.Or(r.s.End, end)
		took := short(micros(to - r.s.Start))
		if r.s.End == 0 {
			took = "open"
		}
		at := svgNames + scale*float64(r.s.Start-start)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`, 4+12*r.depth, y+13, escaped(r.s.Name()+element(r.s)))
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, colour(r.s), at, y+4, max(1.5, scale*float64(to-r.s.Start)), svgRow-7)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", svgNames+svgBars+6, y+13, took)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// element names the element of a list, as log does.
func element(s *view.Span) string {
	for _, a := range s.Attributes {
		if a.Key == "quipu.element" {
			return fmt.Sprintf("[%d]", a.Number)
		}
	}
	return ""
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(plain(text))) // a Builder takes everything
	return b.String()
}
