package expr

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// errLarge says that a value is larger than what may be recorded.
var errLarge = fmt.Errorf("the value has more than %d bytes", MaxResultBytes)

// writer writes a value as canonical JSON. A value may have one part in many places, so that its
// text is far larger than itself: the limit holds while it is written.
type writer struct {
	step *Step
	out  []byte
	most int // the length of out
}

// value writes a value; depth counts the objects and arrays around it.
func (w *writer) value(value ref.Val, depth int) error {
	w.step.spend(1)
	var err error
	switch v := value.(type) {
	case types.Int, *decimal:
		w.out, err = w.step.appendNumber(w.out, v)
	case types.String:
		return w.string(string(v))
	case types.Bool:
		w.out = fmt.Append(w.out, bool(v))
	case types.Null:
		w.out = append(w.out, "null"...)
	case *array:
		return w.nested(v.text, depth)
	case *object:
		if v.text != nil {
			return w.nested(v.text, depth)
		}
		return w.object(v, depth+1)
	case types.Timestamp:
		return w.string(v.UTC().Format(time.RFC3339Nano))
	case types.Duration:
		return w.string(string(v.ConvertToType(types.StringType).(types.String)))
	case types.Bytes:
		w.step.spendFor(len(v), textPerUnit)
		return w.string(base64.StdEncoding.EncodeToString(v))
	case traits.Lister:
		return w.list(v, depth+1)
	default:
		return fmt.Errorf("a %s has no form in JSON", value.Type().TypeName())
	}
	return errors.Join(err, w.room(0))
}

// room says whether n bytes more may be written, and takes their price.
func (w *writer) room(n int) error {
	if len(w.out)+n > w.most {
		return errLarge
	}
	if n > 0 {
		w.step.spendFor(n, textPerUnit)
	}
	return nil
}

func (w *writer) string(text string) error {
	if err := w.room(len(text) + len(`""`)); err != nil {
		return err
	}
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return errors.New("a string with U+0000 or invalid UTF-8")
	}
	from := len(w.out)
	w.out = canonical.AppendString(w.out, text)
	if escapes := len(w.out) - from - len(text) - len(`""`); escapes > 0 {
		w.step.spendFor(escapes, textPerUnit)
	}
	return w.room(0)
}

// nested writes canonical text at a depth, unless that nests too deep.
func (w *writer) nested(text []byte, depth int) error {
	if err := w.room(len(text)); err != nil {
		return err
	}
	if w.step.tooDeep(text, depth) {
		return errDeep
	}
	w.out = append(w.out, text...)
	return nil
}

func (w *writer) list(list traits.Lister, depth int) error {
	if depth > canonical.MaxDepth {
		return errDeep
	}
	w.out = append(w.out, '[')
	for i := range sizeOf(list) {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(element(list, i), depth); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return w.room(0)
}

func (w *writer) object(o *object, depth int) error {
	if depth > canonical.MaxDepth {
		return errDeep
	}
	w.out = append(w.out, '{')
	for i, key := range o.keys {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.string(key); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		if err := w.value(o.at(i), depth); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return w.room(0)
}
