package expr

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// Source gives the values of mentions as canonical JSON. It is asked only for mentions
// that an evaluation reaches.
type Source interface {
	// Value gives one value; an error ends the evaluation.
	Value(r Ref) ([]byte, error)
	// Step is what this evaluation shares with others. Never nil.
	Step() *Step
}

var (
	errNoBool = errors.New("the value is not true or false")
	errDeep   = fmt.Errorf("the value is nested deeper than %d", canonical.MaxDepth)
)

// AppendJSON evaluates the expression and appends its value as canonical payload JSON. A
// time becomes an RFC 3339 string, a duration a string of seconds ("90s"), bytes a base64
// string. Without a direct path the value has up to MaxResultBytes.
func (p *Program) AppendJSON(dst []byte, src Source) (out []byte, err error) {
	step := src.Step()
	step.begin()
	defer step.ended(&err)
	if p.shared == nil {
		text, err := p.follow(src, step)
		step.spendFor(len(text), textPerUnit)
		return append(dst, text...), err
	}
	value, err := p.eval(src, step)
	if err != nil {
		return dst, err
	}
	w := writer{step: step, out: dst, most: len(dst) + MaxResultBytes}
	err = w.value(value, 0)
	return w.out, err
}

// AppendText evaluates the expression and appends its value for use inside a string,
// escaped for JSON, without quotes: a string as it is, any other value as its JSON text.
func (p *Program) AppendText(dst []byte, src Source) ([]byte, error) {
	text, err := p.AppendJSON(nil, src)
	if err == nil {
		err = src.Step().afford(len(text), textPerUnit)
	}
	if err != nil {
		return dst, err
	}
	if text[0] == '"' {
		return append(dst, text[1:len(text)-1]...), nil
	}
	if !bytes.ContainsAny(text, `"\`) {
		return append(dst, text...), nil
	}
	quoted := canonical.AppendString(nil, string(text))
	return append(dst, quoted[1:len(quoted)-1]...), nil
}

// Bool evaluates a condition.
func (p *Program) Bool(src Source) (is bool, err error) {
	step := src.Step()
	step.begin()
	defer step.ended(&err)
	if p.shared == nil {
		text, err := p.follow(src, step)
		if err == nil && string(text) != "true" && string(text) != "false" {
			err = errNoBool
		}
		return string(text) == "true", err
	}
	value, err := p.eval(src, step)
	if err != nil {
		return false, err
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, errNoBool
	}
	return bool(b), nil
}

// indexFrom is the size of an object, in bytes, from which a direct path opens it once for the
// step. A smaller one is read through each time, which allocates nothing.
const indexFrom = 1 << 10

// follow reads a direct path from the JSON text.
func (p *Program) follow(src Source, step *Step) ([]byte, error) {
	step.spend(pathPrice)
	at := p.refs[0]
	text, err := src.Value(at)
	if err != nil {
		return nil, err
	}
	var known *object
	if len(p.path) > 0 && len(text) >= indexFrom {
		known, _ = step.value(at, text).(*object)
	}
	for _, key := range p.path {
		if known == nil {
			if text, err = step.lookUp(text, key); err != nil {
				return nil, err
			}
			continue
		}
		i, ok := known.index(key)
		if !ok {
			return nil, noSuchKey(key)
		}
		text = known.texts[i]
		if text[0] != '{' || len(text) < indexFrom {
			known = nil
		} else {
			known = known.at(i).(*object)
		}
	}
	return text, nil
}

// lookUp finds a plain key (ASCII, without escapes) in an object.
func (s *Step) lookUp(text []byte, key string) ([]byte, error) {
	if text[0] == '{' {
		s.spendFor(len(text), readPerUnit)
		for name, value := range canonical.Members(text) {
			if string(name[1:len(name)-1]) == key {
				return value, nil
			}
		}
	}
	return nil, noSuchKey(key)
}

func noSuchKey(key string) error { return fmt.Errorf("no such key: %s", key) }

// values is the activation of one evaluation. It implements cel.Activation.
type values struct {
	program *Program
	src     Source
	step    *Step
	known   []ref.Val
	err     error
}

func (v *values) Parent() cel.Activation { return nil }

func (v *values) ResolveName(name string) (any, bool) {
	digits, isTime := strings.CutPrefix(name[1:], "t")
	i := 0
	for _, c := range digits {
		i = i*10 + int(c-'0')
	}
	if v.known[i] != nil {
		return v.known[i], true
	}
	text, err := v.src.Value(v.program.refs[i])
	if err != nil {
		v.err = err
		return nil, false
	}
	v.known[i] = v.step.value(v.program.refs[i], text)
	if isTime {
		v.known[i] = v.known[i].ConvertToType(types.TimestampType)
	}
	return v.known[i], true
}

func (p *Program) eval(src Source, step *Step) (ref.Val, error) {
	step.spend(p.weights.whole)
	activation := p.activation(src, step)
	value, _, err := run(p.program, activation)
	switch {
	case activation.err != nil:
		return nil, activation.err
	case step.err != nil:
		return nil, step.err
	case err != nil:
		return nil, p.clashed(err, src, step)
	}
	return value, nil
}

// tracker is what a frame carries to all nodes: CEL's tracker of costs, by way of its estimator.
var tracker = sync.OnceValues(func() (*cost.Tracker, error) { return cost.NewTracker(nil) })

// run evaluates a program in a frame that leads to the step.
func run(program cel.Program, activation *values) (ref.Val, *cel.EvalDetails, error) {
	bare, err := tracker()
	if err != nil {
		return nil, nil, err
	}
	own := *bare
	own.Estimator = activation.step
	frame, err := interpreter.NewExecutionFrame(activation)
	if err != nil {
		return nil, nil, err
	}
	defer frame.Close()
	frame.SetCostTracker(&own)
	return program.Eval(frame)
}

func (p *Program) activation(src Source, step *Step) *values {
	return &values{program: p, src: src, step: step, known: make([]ref.Val, len(p.refs))}
}
