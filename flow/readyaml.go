package flow

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quipu-journal/quipu/canonical"
)

// readYAML reads one YAML document into nodes. It accepts the part of YAML that has one
// meaning in JSON: mappings with string keys, lists, scalars, anchors and aliases.
// Numbers keep their exact text.
func readYAML(src []byte, c *collector) (root *node) {
	defer func() { // a panic of the third-party parser must not end the process
		if reason := recover(); reason != nil {
			c.add(position{1, 1}, "", "", "not readable as YAML: %v", reason)
			root = nil
		}
	}()
	tokens := lexer.Tokenize(string(src))
	if t := crowded(tokens); t != nil {
		c.add(placeOf(t), "", "", "nested deeper than %d", canonical.MaxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		yamlError(err, c)
		return nil
	}
	r := yamlReader{collector: c, anchors: map[string]*node{}}
	for _, document := range file.Docs {
		if document.Body == nil {
			continue
		}
		if root != nil {
			c.add(placeOf(document.Body.GetToken()), "", "", "a file holds one flow, this is a second document")
			break
		}
		root = r.node(document.Body)
	}
	if root == nil && len(c.faults) == 0 {
		c.add(position{1, 1}, "", "", "the file is empty")
	}
	return root
}

func yamlError(err error, c *collector) {
	p, message := position{1, 1}, err.Error()
	var syntax interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &syntax) {
		message = syntax.GetMessage()
		if t := syntax.GetToken(); t != nil {
			p = placeOf(t)
		}
	}
	if strings.Contains(message, "\t") {
		message = strings.ReplaceAll(message, "\t", `\t`) + "; YAML indents with spaces, not with tabs"
	}
	c.add(p, "", "", "not YAML: %s", message)
}

func placeOf(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// crowded finds the token at which a file nests so deep that reading it would take too
// much stack: by brackets, or by many openings in one line.
func crowded(tokens token.Tokens) *token.Token {
	brackets, line, openings := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, openings = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			openings++
		case token.CollectEntryType:
			openings = 0
		}
		if brackets > canonical.MaxDepth || openings > canonical.MaxDepth {
			return t
		}
	}
	return nil
}

type yamlReader struct {
	*collector
	anchors map[string]*node
	total   int
}

// node converts a value; nil means that a fault was added.
func (r *yamlReader) node(v ast.Node) *node {
	if v == nil {
		return &node{kind: kindNull, text: "null", size: 1}
	}
	if r.total++; r.total > MaxNodes {
		if r.total == MaxNodes+1 {
			r.add(placeOf(v.GetToken()), "", "", "more than %d values", MaxNodes)
		}
		return nil
	}
	n := &node{position: placeOf(v.GetToken()), size: 1}
	switch v := v.(type) {
	case *ast.MappingNode:
		n.kind = kindMap
		if !v.IsFlowStyle && len(v.Values) > 0 { // the parser names its first colon
			n.position = placeOf(v.Values[0].Key.GetToken())
		}
		for _, value := range v.Values {
			r.member(n, value)
		}
	case *ast.MappingValueNode:
		n.kind, n.position = kindMap, placeOf(v.Key.GetToken())
		r.member(n, v)
	case *ast.SequenceNode:
		n.kind = kindList
		for _, value := range v.Values {
			if item := r.node(value); item != nil {
				n.items = append(n.items, item)
				n.size += item.size
			}
		}
	case *ast.AnchorNode:
		value := r.node(v.Value)
		r.anchors[v.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return r.alias(v)
	case *ast.TagNode:
		return r.tagged(v)
	default:
		return r.scalar(n, v)
	}
	return n
}

func (r *yamlReader) member(n *node, v *ast.MappingValueNode) {
	key := v.Key.GetToken()
	m := member{position: placeOf(key)}
	switch k := v.Key.(type) {
	case *ast.StringNode:
		m.key = k.Value
	case *ast.MergeKeyNode:
		r.add(m.position, "", key.Value, "merge keys are not supported; write the values out")
		return
	default:
		r.add(m.position, "", key.Value, "a key must be a string; quote it")
		return
	}
	if strings.IndexByte(m.key, 0) >= 0 {
		r.add(m.position, "", "", "U+0000 is not allowed")
		return
	}
	if m.value = r.node(v.Value); m.value == nil {
		return
	}
	if m.value.line == 0 {
		m.value.position = m.position
	}
	n.members = append(n.members, m)
	n.size += m.value.size
}

// alias returns the value of an anchor, counted as if it were written there.
func (r *yamlReader) alias(v *ast.AliasNode) *node {
	name := v.Value.GetToken()
	target := r.anchors[name.Value]
	if target == nil {
		r.add(placeOf(name), "", name.Value, "no anchor of this name comes before it")
		return nil
	}
	if r.total += target.size; r.total > MaxNodes {
		r.add(placeOf(name), "", name.Value, "more than %d values, with aliases", MaxNodes)
		r.total = MaxNodes + 1 // reported once
		return nil
	}
	return target
}

func (r *yamlReader) tagged(v *ast.TagNode) *node {
	tag := v.GetToken()
	scalar, ok := v.Value.(ast.ScalarNode)
	if tag.Value != "!!str" || !ok {
		r.add(placeOf(tag), "", tag.Value, "tags other than !!str on a scalar are not supported")
		return nil
	}
	if text, ok := v.Value.(*ast.StringNode); ok {
		return r.scalar(&node{position: placeOf(text.Token), size: 1}, text)
	}
	return &node{position: placeOf(scalar.GetToken()), kind: kindString, text: scalar.GetToken().Value, size: 1}
}

func (r *yamlReader) scalar(n *node, v ast.Node) *node {
	text := v.GetToken().Value
	switch v := v.(type) {
	case *ast.NullNode:
		n.kind, n.text = kindNull, "null"
	case *ast.BoolNode:
		n.kind, n.text = kindBool, strconv.FormatBool(v.Value)
	case *ast.StringNode:
		n.kind, n.text = kindString, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = kindString, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		number, err := canonical.Payload([]byte(text))
		if err != nil || !jsonNumber.MatchString(text) {
			r.add(n.position, "", text, "a number is written as in JSON: 12, -0.5, 1e6; quote it if it is a string")
			return nil
		}
		n.kind, n.text = kindNumber, string(number)
	default:
		r.add(n.position, "", text, "a value that JSON does not have")
		return nil
	}
	if n.kind == kindString {
		if _, err := canonical.Payload(canonical.AppendString(nil, n.text)); err != nil {
			r.add(n.position, "", n.text, "a string with U+0000 or invalid UTF-8")
			return nil
		}
	}
	return n
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
