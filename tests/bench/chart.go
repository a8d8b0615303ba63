package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// chart is a plot of lines.
type chart struct {
	title, sub string
	x, y       axis
	series     []series
}

// series is one line of a chart.
type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// axis goes from 0, or by powers of ten, to what its values need.
type axis struct {
	label string
	log   bool

	from, to float64
	ticks    []float64
}

// The field of a chart, within its picture.
const (
	left, right = 80.0, 690.0
	top, bottom = 80.0, 380.0
)

// span fits the axis to its values.
func (a *axis) span(values []float64) {
	most := slices.Max(values)
	if a.log {
		a.from = decade(slices.Min(values))
		for unit := a.from; a.to < most; unit *= 10 {
			for _, t := range []float64{unit, 2 * unit, 5 * unit} {
				if a.to < most {
					a.to, a.ticks = t, append(a.ticks, t)
				}
			}
		}
		return
	}
	step := decade(most / 4)
	for _, more := range []float64{2, 2.5, 2} {
		if most/step > 6 {
			step *= more
		}
	}
	for a.ticks = []float64{0}; a.to < most; {
		a.to += step
		a.ticks = append(a.ticks, a.to)
	}
}

// decade is the power of ten at or below a value.
func decade(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(max(v, 1e-3)))) }

// place is where a value stands between two ends of the field.
func (a *axis) place(v, low, high float64) float64 {
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = math.Log(v/a.from) / math.Log(a.to/a.from)
	}
	return math.Round(10*(low+share*(high-low))) / 10
}

func (a *axis) marks(low, high float64) (out []mark) {
	for _, t := range a.ticks {
		out = append(out, mark{a.place(t, low, high), digits(t)})
	}
	return out
}

// mark is a tick of an axis, as it is drawn.
type mark struct {
	At   float64
	Text string
}

// digits writes a number with spaces between the thousands.
func digits(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	for i := strings.IndexByte(s+".", '.') - 3; i > 0; i -= 3 {
		s = s[:i] + "\u2009" + s[i:]
	}
	return s
}

// drawn is a line of a chart as it is drawn.
type drawn struct {
	Class, Name, Path string
	Dots              []dot
	End               dot
	Down              int // of the name, which is not to lie upon another
}

type dot struct{ X, Y float64 }

//go:embed chart.svg.tmpl
var picture string

var svgTemplate = template.Must(template.New("chart").Parse(picture))

// svg draws the chart; in the colours of light and of dark surroundings.
func (c *chart) svg() ([]byte, error) {
	var xs, ys []float64
	for _, s := range c.series {
		for _, p := range s.points {
			xs, ys = append(xs, p.x), append(ys, p.y)
		}
	}
	c.x.span(xs)
	c.y.span(ys)
	var lines []drawn
	for i, s := range c.series {
		d := drawn{Class: fmt.Sprintf("s%d", i), Name: s.name, Down: 4 + 8*(len(c.series)-1) - 16*i}
		for _, p := range s.points {
			d.Dots = append(d.Dots, dot{c.x.place(p.x, left, right), c.y.place(p.y, bottom, top)})
		}
		for _, at := range d.Dots {
			d.Path += fmt.Sprintf(" %g,%g", at.X, at.Y)
		}
		d.End = d.Dots[len(d.Dots)-1]
		lines = append(lines, d)
	}
	var out bytes.Buffer
	err := svgTemplate.Execute(&out, map[string]any{
		"Title": c.title, "Sub": c.sub, "XLabel": c.x.label, "YLabel": c.y.label,
		"Left": left, "Right": right, "Top": top, "Bottom": bottom,
		"X": c.x.marks(left, right), "Y": c.y.marks(bottom, top), "Lines": lines,
	})
	return out.Bytes(), err
}
