package edit

import (
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Editor knows the values that lines change. Its methods panic where a line does not fit: the
// text of a test is wrong then.
type Editor struct {
	Root  func(name string) any // a pointer to the value of a name
	Names map[string]any        // integers, other values, and functions
}

// Do does what the lines say.
func (e *Editor) Do(lines string) {
	for line := range strings.SplitSeq(lines, "\n") {
		if f, args := e.called(line); f.IsValid() {
			f.Call(args)
			continue
		}
		words := strings.SplitN(line, " ", 3)
		switch {
		case len(words) > 1:
			e.do(words[0], words[1], strings.TrimSpace(strings.Join(words[2:], "")))
		case line != "":
			panic("neither a call nor a change: " + line)
		}
	}
}

func (e *Editor) do(path, verb, text string) {
	p := e.find(path)
	switch verb {
	case "=":
		p.Set(e.value(text, p.Type()))
	case "+=":
		n := reflect.Indirect(p.Value)
		n.SetInt(n.Int() + e.sum(text))
	case "-=":
		n := reflect.Indirect(p.Value)
		n.SetInt(n.Int() - e.sum(text))
	case "swap":
		other, mine := e.find(text), reflect.New(p.Type()).Elem()
		mine.Set(p.Value)
		p.Set(other.Value)
		other.Set(mine)
	case "flip":
		b := p.Value
		if b.Kind() != reflect.Uint8 {
			b = p.Index(0)
		}
		b.SetUint(b.Uint() ^ 1)
	case "zero":
		p.SetZero()
	case "clear":
		p.Set(reflect.MakeMap(p.Type()))
	case "append":
		more := reflect.Zero(p.Type().Elem())
		if text != "" {
			more = e.value(text, p.Type().Elem())
		}
		p.Set(reflect.Append(p.Slice3(0, p.Len(), p.Len()), more))
	case "insert":
		list := p.around
		rest := reflect.AppendSlice(reflect.MakeSlice(list.Type(), 0, 0), list.Slice(p.at, list.Len()))
		list.Set(reflect.AppendSlice(reflect.Append(list.Slice3(0, p.at, p.at), e.value(text, list.Type().Elem())),
			rest))
	case "drop":
		if p.around.Kind() == reflect.Map {
			p.around.SetMapIndex(p.key, reflect.Value{})
			return
		}
		p.around.Set(reflect.AppendSlice(p.around.Slice3(0, p.at, p.at), p.around.Slice(p.at+1, p.around.Len())))
	default:
		panic("unknown verb " + verb)
	}
	for _, keep := range slices.Backward(p.keep) {
		keep()
	}
}

// place is the value at a path. An element knows the list or map around it; keep puts the
// elements of maps on the way back, since they are copies.
type place struct {
	reflect.Value
	around reflect.Value
	at     int
	key    reflect.Value
	keep   []func()
}

func (e *Editor) find(path string) *place {
	end := strings.IndexAny(path+".", ".[")
	p := &place{Value: reflect.ValueOf(e.Root(path[:end])).Elem()}
	for rest := path[end:]; rest != ""; {
		for p.Kind() == reflect.Pointer {
			if p.IsNil() {
				p.Set(reflect.New(p.Type().Elem()))
			}
			p.Value = p.Elem()
		}
		if rest[0] == '[' {
			end := 1
			for open := 1; open > 0; end++ {
				open += strings.Count(rest[end:end+1], "[") - strings.Count(rest[end:end+1], "]")
			}
			e.element(p, rest[1:end-1])
			rest = rest[end:]
			continue
		}
		end := 1 + strings.IndexAny(rest[1:]+".", ".[")
		if p.Value = p.FieldByName(rest[1:end]); !p.IsValid() {
			panic("no field " + rest[1:end] + " in " + path)
		}
		rest = rest[end:]
	}
	return p
}

// element goes on to an element of a list or a map.
func (e *Editor) element(p *place, which string) {
	p.around = p.Value
	if p.Kind() != reflect.Map {
		at, err := strconv.Atoi(which)
		for err != nil && !fits(p.Index(at), which) {
			at++
		}
		p.at = (at + p.Len()) % p.Len()
		p.Value = p.Index(p.at)
		return
	}
	if p.IsNil() {
		p.Set(reflect.MakeMap(p.Type()))
	}
	if p.key = match(p.Value, which); !p.key.IsValid() {
		p.key = e.value(which, p.Type().Key())
	}
	all, key, one := p.Value, p.key, reflect.New(p.Type().Elem()).Elem()
	if v := all.MapIndex(key); v.IsValid() {
		one.Set(v)
	}
	p.Value, p.keep = one, append(p.keep, func() { all.SetMapIndex(key, one) })
}

// match is the first key, in the order of their texts, that fits or whose value fits.
func match(all reflect.Value, which string) reflect.Value {
	keys := map[string]reflect.Value{}
	for _, k := range all.MapKeys() {
		if fits(k, which) || fits(all.MapIndex(k), which) {
			keys[fmt.Sprint(k)] = k
		}
	}
	for _, text := range slices.Sorted(maps.Keys(keys)) {
		return keys[text]
	}
	if which == "*" || strings.Contains(which, "=") {
		panic("nothing is " + which)
	}
	return reflect.Value{}
}

func fits(v reflect.Value, which string) bool {
	name, value, named := strings.Cut(which, "=")
	v = reflect.Indirect(v)
	return which == "*" ||
		named && v.Kind() == reflect.Struct && v.FieldByName(name).IsValid() && fmt.Sprint(v.FieldByName(name)) == value
}

// value reads a value of the type.
func (e *Editor) value(text string, t reflect.Type) reflect.Value {
	if path, found := strings.CutPrefix(text, "@"); found {
		return as(e.find(path).Value, t)
	}
	if f, args := e.called(text); f.IsValid() {
		return as(f.Call(args)[0], t)
	}
	if named := reflect.ValueOf(e.Names[text]); named.IsValid() && named.Type() == t {
		return named
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(e.value(text, t.Elem()))
	case reflect.Int, reflect.Int64:
		v.SetInt(e.sum(text))
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.String:
		if plain, err := strconv.Unquote(text); err == nil {
			text = plain
		}
		v.SetString(text)
	case reflect.Array:
		b, err := hex.DecodeString(text)
		if err != nil {
			panic(err)
		}
		reflect.Copy(v, reflect.ValueOf(b))
	case reflect.Struct:
		if inner, braced := strings.CutPrefix(strings.TrimSuffix(text, "}"), "{"); braced {
			for part := range strings.SplitSeq(inner, ", ") {
				name, of, _ := strings.Cut(part, ": ")
				v.FieldByName(name).Set(e.value(of, v.FieldByName(name).Type()))
			}
			break
		}
		for i, part := range strings.Split(text, "/") {
			v.Field(i).Set(e.value(part, t.Field(i).Type))
		}
	default: // a slice
		if t.Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			break
		}
		for part := range strings.SplitSeq(text, ", ") {
			v = reflect.Append(v, e.value(part, t.Elem()))
		}
	}
	return v
}

// called is the function and the arguments of a call; none, if the text is no call.
func (e *Editor) called(text string) (f reflect.Value, args []reflect.Value) {
	name, inner, _ := strings.Cut(strings.TrimSuffix(text, ")"), "(")
	if f = reflect.ValueOf(e.Names[name]); !strings.HasSuffix(text, ")") || !f.IsValid() {
		return reflect.Value{}, nil
	}
	for i := range f.Type().NumIn() {
		var arg string
		if arg, inner, _ = strings.Cut(inner, ", "); i == f.Type().NumIn()-1 && inner != "" {
			arg += ", " + inner
		}
		args = append(args, e.value(arg, f.Type().In(i)))
	}
	return f, args
}

// as makes it a value of the type, where only a pointer or the name of the type is in the way.
func as(v reflect.Value, t reflect.Type) reflect.Value {
	switch {
	case v.Kind() == reflect.Pointer && t == v.Type().Elem():
		return v.Elem()
	case t.Kind() == reflect.Pointer && t.Elem() == v.Type():
		return v.Addr()
	}
	return v.Convert(t)
}

// sum is a sum of products.
func (e *Editor) sum(text string) (sum int64) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, " ", ""), "-", "+-")
	for term := range strings.SplitSeq(strings.TrimPrefix(text, "+"), "+") {
		product := int64(1)
		for factor := range strings.SplitSeq(term, "*") {
			bare, minus := strings.CutPrefix(factor, "-")
			n, err := strconv.ParseInt(bare, 0, 64)
			if named := reflect.ValueOf(e.Names[bare]); named.IsValid() {
				n = named.Int()
			} else if err != nil {
				panic(err)
			}
			if minus {
				n = -n
			}
			product *= n
		}
		sum += product
	}
	return sum
}

// Field is a pointer to the field of the struct that v points to, for Root.
func Field(v any, name string) any {
	f := reflect.ValueOf(v).Elem().FieldByName(name)
	if !f.IsValid() {
		panic("no field " + name)
	}
	return f.Addr().Interface()
}
