package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/journal"
)

// FuzzBody: the body of a write is one object with known members, which is read as it stands, or
// a problem with a stable code (O10).
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"flow":"order","key":"o-1","input":{"n":1},"delay":"90s","at":"2026-01-31T18:00:00Z","tags":["a"]}`,
		`{"topic":"paid","key":"o-1","payload":null,"code":200,"all":true,"keep":"24h"}`,
		`{"code":410,"reason":"r","descend":true,"no_throw":true}`,
		`{"verdict":"done","effect":"00","result":{"n":1},"message":"m"}`,
		``, `[]`, `{"colour":1}`, `{}{}`, `{"flow":"a","delay":"-1"}`,
	} {
		for kind := range uint8(5) {
			f.Add(kind, "application/json", seed, `"o-1"`)
		}
	}
	f.Add(uint8(0), "text/plain", `{}`, "")
	f.Fuzz(func(t *testing.T, kind uint8, contentType, body, key string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Idempotency-Key", key)
		read := func(v, again any) error {
			err := decode(r, v)
			if err == nil {
				text, err := json.Marshal(v)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, again))
				same, err := json.Marshal(again)
				require.NoError(t, err)
				require.JSONEq(t, string(text), string(same))
				require.True(t, strings.TrimSpace(body) == "" || json.Valid([]byte(body)), "one value")
			}
			return err
		}
		var err error
		switch kind % 7 {
		case 0:
			s := &StartRequest{}
			if err = read(s, &StartRequest{}); err == nil {
				req, wrong := s.request(idempotencyKey(r))
				if err = wrong; err == nil {
					require.NotEmpty(t, req.Flow)
					require.True(t, req.Key == s.Key || s.Key == "")
					require.NotEmpty(t, req.Input)
				}
			}
		case 1:
			err = read(&SignalRequest{}, &SignalRequest{})
		case 2:
			err = read(&InterruptRequest{}, &InterruptRequest{})
		case 3:
			err = read(&DecideRequest{}, &DecideRequest{})
		case 4:
			err = read(&ResumeRequest{}, &ResumeRequest{})
		case 5:
			err = read(&ForkRequest{}, &ForkRequest{})
		case 6:
			err = read(&DeployRequest{}, &DeployRequest{})
		}
		if err != nil {
			require.Contains(t, []string{CodeMalformed, CodeMediaType}, problemOf(err).Code)
		}
	})
}

// FuzzQuery: parameters of an operation are read, each within its limits, or the first that is
// wrong is named (O10).
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"state=open&state=failed&flow=a&tag=x&tag=y&from=2026-01-31T18:00:00Z&limit=7", "limit=0", "at=7&cursor=100&limit=7", "state=gone", "colour=1", "%zz", "parent=x", "a;b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{URL: &url.URL{RawQuery: raw}}
		p := parameters(r, "at", "guid", "cursor", "limit")
		if at, part := entryOf(p), sliceOf(p); p.err == nil {
			require.GreaterOrEqual(t, at, int64(0))
			require.True(t, part.from >= 0 && part.limit >= 1 && part.limit <= MaxItems)
		}
		q := parameters(r, append(slices.Clone(filters), "cursor", "limit")...)
		filter, limit := filter(q), limitOf(q, MaxLimit)
		if q.err != nil {
			p := problemOf(q.err)
			require.Equal(t, CodeMalformed, p.Code)
			p.Write(httptest.NewRecorder())
			return
		}
		require.True(t, limit >= 1 && limit <= MaxLimit)
		for _, s := range filter.States {
			require.Contains(t, journal.JobStates, s)
		}
		values, err := url.ParseQuery(raw)
		require.NoError(t, err)
		require.Equal(t, values["tag"], filter.Tags)
		require.Equal(t, values.Get("flow"), filter.Flow)
	})
}
