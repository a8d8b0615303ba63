package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/canonical"
	"github.com/quipu-journal/quipu/journal"
)

// T6: docs/wire.md is the contract: its examples decode as their type without unknown
// fields, and contain every field.
func TestT6ContractIsTheCode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	text := string(raw)
	blocks := regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```").FindAllStringSubmatch(text, -1)
	require.GreaterOrEqual(t, len(blocks), 8)
	for _, b := range blocks {
		switch b[1] {
		case "request":
			decodes[Request](t, b[2])
		case "hint":
			h := decodes[Hint](t, b[2])
			_, err := h.Response.Journal()
			require.NoError(t, err)
		case "response":
			_, err := decodes[Response](t, b[2]).Journal()
			require.NoError(t, err, b[2])
		case "derived":
			derived(t, b[2])
		case "consumer", "mac": // checked in transport/nats and keyring
		default:
			t.Errorf("a block of unknown kind %s", b[1])
		}
	}
	for _, v := range []any{Request{}, Response{}, Failure{}, Hint{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			require.True(t, strings.Contains(text, `"`+name+`"`) || strings.Contains(text, "`"+name+"`"), "%T.%s is not in the text", v, name)
		}
	}
}

// derived checks the example with which a worker can test its derivations.
func derived(t *testing.T, text string) {
	t.Helper()
	var d struct {
		Request, Response, Job string
		Turn, Lanes, Lane      int
	}
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	request, err := journal.ParseGUID(d.Request)
	require.NoError(t, err)
	job, err := journal.ParseJobID(d.Job)
	require.NoError(t, err)
	want := collation.ResponseGUID(request, d.Turn)
	require.Equal(t, hex.EncodeToString(want[:]), d.Response)
	require.Equal(t, LaneOf(job, d.Lanes), d.Lane)
	require.NotZero(t, d.Lane)
}

// T6: the limits in the text are those of the code.
func TestT6LimitsAsStated(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/wire.md")
	require.NoError(t, err)
	spaced := func(n int) string { return fmt.Sprintf("%d %03d", n/1000, n%1000) }
	for _, stated := range []string{
		spaced(MaxInline) + " bytes in a message", fmt.Sprintf("%d MiB in all", MaxResult>>20),
		fmt.Sprintf("%d levels", canonical.MaxDepth), spaced(MaxText) + " bytes a text",
	} {
		require.Contains(t, string(raw), stated)
	}
}

func decodes[T Hint | Request | Response](t *testing.T, text string) *T {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(new(T)), text)
	v, err := Decode[T]([]byte(text))
	require.NoError(t, err)
	return v
}

// T6: the text's derivation of a response's GUID is that of the code.
func TestT6ResponseGUIDAsStated(t *testing.T) {
	t.Parallel()
	request := journal.GUID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	b := slices.Concat(
		[]byte{0, 0, 0, 0x11}, []byte("quipu-response-v1"),
		[]byte("g"), []byte{0, 0, 0, 0x10}, request[:],
		[]byte("i"), []byte{0, 0, 0, 8}, binary.BigEndian.AppendUint64(nil, 3),
	)
	sum := sha256.Sum256(b)
	want := journal.GUID(sum[:16])
	want[6] = want[6]&0x0f | 0x80
	want[8] = want[8]&0x3f | 0x80
	require.Equal(t, want, collation.ResponseGUID(request, 3))
}
