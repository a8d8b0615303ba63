package expr

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// What parts of an expression take, in nanoseconds, whatever their values are. A part within a
// macro takes innerTime more for each macro around it, because a name is looked up in all.
const (
	literalTime, nameTime, innerTime, pathTime                = 3, 25, 10, 25
	callTime, madeTime, literalPlaceTime, macroTime, passTime = 50, 80, 25, 300, 70
)

// weights are the prices of the nodes of one expression: of calls, lists, objects and macros,
// and of the passes of macros. The price of such a node includes the names, the paths and the
// literals in it.
type weights struct {
	whole int64           // of what is in no other node
	nodes map[int64]int64 // by the id of a node
	// ranges has the macro of each node that a macro goes through, literals the conditions of
	// macros that are literals, texts the arguments whose text a function of CEL reads.
	ranges   map[int64]int64
	literals map[int64]bool
	texts    map[int64]bool
	count    int64
}

func weigh(e ast.Expr) *weights {
	w := &weights{
		nodes: map[int64]int64{}, ranges: map[int64]int64{}, literals: map[int64]bool{}, texts: map[int64]bool{},
	}
	w.whole = celPrice + units(w.time(e, 0))
	return w
}

func units(time int64) int64 { return (time + unitTime - 1) / unitTime }

// time is what a part adds to the node around it. depth counts the macros around it.
func (w *weights) time(e ast.Expr, depth int64) int64 {
	w.count++
	switch e.Kind() {
	case ast.LiteralKind:
		return literalTime
	case ast.IdentKind:
		return nameTime + innerTime*depth
	case ast.SelectKind:
		return pathTime + w.time(e.AsSelect().Operand(), depth)
	case ast.CallKind:
		return w.call(e, depth)
	case ast.ListKind:
		elements := e.AsList().Elements()
		w.nodes[e.ID()] = units(madeTime + literalPlaceTime*int64(len(elements)) + w.times(elements, depth))
	case ast.MapKind:
		time := int64(madeTime)
		for _, entry := range e.AsMap().Entries() {
			key, value := entry.AsMapEntry().Key(), entry.AsMapEntry().Value()
			time += 2*literalPlaceTime + w.time(key, depth) + w.time(value, depth)
		}
		w.nodes[e.ID()] = units(time)
	case ast.ComprehensionKind:
		w.macro(e, depth)
	}
	return 0
}

func (w *weights) times(es []ast.Expr, depth int64) (time int64) {
	for _, e := range es {
		time += w.time(e, depth)
	}
	return time
}

// fixed are the functions of CEL that read a text; all others but operations take a moment.
var fixed = []string{"bool", "bytes", "duration", "timestamp"}

func (w *weights) call(e ast.Expr, depth int64) int64 {
	call := e.AsCall()
	args := slices.Clone(call.Args())
	if call.IsMemberFunction() {
		args = append(args, call.Target())
	}
	time := callTime + w.times(args, depth)
	if operations[call.FunctionName()] == nil {
		time += callTime // CEL looks up what it runs
	}
	switch name := call.FunctionName(); {
	case name == operators.Index || name == operators.Conditional: // a path for CEL, and no node of its own
		return time
	case call.IsMemberFunction() && len(call.Args()) == 1 && operations[name] == nil:
		time += zonePrice * unitTime // a part of a time in a zone
		w.texts[call.Args()[0].ID()] = true
	case slices.Contains(fixed, name):
		w.texts[args[0].ID()] = true
	}
	w.nodes[e.ID()] = units(time)
	return 0
}

func (w *weights) macro(e ast.Expr, depth int64) {
	c := e.AsComprehension()
	w.ranges[c.IterRange().ID()] = e.ID()
	w.nodes[e.ID()] = units(macroTime + w.time(c.IterRange(), depth) + w.time(c.AccuInit(), depth) +
		w.time(c.Result(), depth))
	condition := c.LoopCondition()
	pass := passTime + w.time(condition, depth+1) + w.time(c.LoopStep(), depth+1)
	w.literals[condition.ID()] = condition.Kind() == ast.LiteralKind
	w.nodes[condition.ID()] += units(pass)
}

// node makes of a node of CEL one that takes its price before it is evaluated.
func (w *weights) node(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	id := i.ID()
	call, isCall := i.(interpreter.InterpretableCall)
	made, isMade := i.(interpreter.InterpretableConstructor)
	_, isPath := i.(interpreter.InterpretableAttribute)
	_, isLiteral := i.(interpreter.InterpretableConst)
	switch {
	case isCall && operations[call.Function()] != nil:
		i = newCallNode(call, w.nodes[id])
	case isMade && made.Type() == types.MapType:
		i = &objectNode{InterpretableV2: i, parts: made.InitVals(), units: w.nodes[id]}
	case !isPath && (!isLiteral || w.literals[id]):
		i = &countedNode{i, w.nodes[id]}
	}
	if w.texts[id] {
		i = &textNode{i}
	}
	if macro, ok := w.ranges[id]; ok {
		i = &rangeNode{i, macro}
	}
	return i, nil
}

// program plans a checked expression, whose nodes take their prices.
func program(env *cel.Env, checked *cel.Ast, w *weights, options ...cel.ProgramOption) (cel.Program, error) {
	return env.Program(checked, append(options, cel.CustomDecoratorV2(w.node))...)
}

// countedNode is a node of CEL at its price.
type countedNode struct {
	interpreter.InterpretableV2
	units int64
}

func (n *countedNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	stepOf(frame).spend(n.units)
	return n.InterpretableV2.Exec(frame)
}

func (n *countedNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}

// textNode is an argument whose text a function of CEL reads.
type textNode struct{ interpreter.InterpretableV2 }

func (n *textNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableV2.Exec(frame)
	stepOf(frame).spendFor(length(v), shownPerUnit)
	return v
}

func (n *textNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}

// rangeNode is what a macro goes through.
type rangeNode struct {
	interpreter.InterpretableV2
	macro int64
}

func (n *rangeNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := n.InterpretableV2.Exec(frame)
	switch v.(type) {
	case traits.Lister, *object, *types.Err:
		return v
	}
	text := "only a list or an object can be gone through, not " + kindOf(v.Type().TypeName())
	return types.LabelErrNode(n.macro, types.WrapErr(&clash{text}))
}

func (n *rangeNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}

// callNode is a call of an operation.
type callNode struct {
	interpreter.InterpretableV2
	a, b  interpreter.InterpretableV2 // b may be nil
	units int64
	run   operation
}

func newCallNode(call interpreter.InterpretableCall, units int64) *callNode {
	args := call.Args()
	n := &callNode{InterpretableV2: call, a: args[0], units: units, run: operations[call.Function()]}
	if len(args) > 1 {
		n.b = args[1]
	}
	if call.Function() == overloads.Matches {
		if literal, ok := n.b.(interpreter.InterpretableConst); ok {
			n.run = matchesLiteral(string(literal.Value().(types.String)))
		}
	}
	return n
}

func (n *callNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	step := stepOf(frame)
	step.spend(n.units)
	a := n.a.Exec(frame)
	if types.IsError(a) {
		return a
	}
	var b ref.Val
	if n.b != nil {
		if b = n.b.Exec(frame); types.IsError(b) {
			return b
		}
	}
	v := n.run(step, a, b)
	if failed, is := v.(*types.Err); is && failed.NodeID() == 0 {
		return types.LabelErrNode(n.ID(), failed)
	}
	return v
}

func (n *callNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}

// objectNode makes an object. CEL's own goes through its keys in another order each time.
type objectNode struct {
	interpreter.InterpretableV2
	parts []interpreter.InterpretableV2 // key, value, key, value …
	units int64
}

func (n *objectNode) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	o := &object{step: stepOf(frame)}
	o.step.spend(n.units)
	for i := 0; i < len(n.parts); i += 2 {
		key := n.parts[i].Exec(frame)
		if types.IsError(key) {
			return key
		}
		name, ok := key.(types.String)
		if !ok {
			return types.NewErrWithNodeID(n.ID(), "a key that is not a string")
		}
		value := n.parts[i+1].Exec(frame)
		if types.IsError(value) {
			return value
		}
		o.put(string(name), value)
	}
	return o
}

func (n *objectNode) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, n.Exec)
}
