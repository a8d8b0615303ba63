package examples_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is the first block of a kind in docs/wire.md.
func block(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/wire.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```json " + kind + "\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, found, kind)
	return string(found[1])
}

// T6: wire.js derives what docs/wire.md states.
func TestT6DerivedAsStated(t *testing.T) {
	t.Parallel()
	dir := install(t)
	derived, signed := block(t, "derived"), block(t, "mac")
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `
		import { authentic, consumerOf, laneOf, mac, readKeys, responseGuid } from "./wire.js";
		const d = JSON.parse(process.argv[1]), m = JSON.parse(process.argv[2]);
		const derived = { ...d, response: responseGuid(d.request, d.turn), lane: laneOf(d.job, d.lanes) };
		const keys = readKeys(m.key);
		const signed = { ...m, mac: mac(keys[0], m.to, (name) => m.headers[name], m.body) };
		const request = { get: (name) => (name === "Quipu-Mac" ? mac(keys[0], "work.a", () => "", "x") : "") };
		const checks = [["a", "x"], ["b", "x"], ["a", "y"]].map(([topic, body]) => authentic(keys, topic, request, body));
		console.log(JSON.stringify([consumerOf("payments.charge"), derived, signed, checks]));`, derived, signed)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.JSONEq(t, `["work-payments=charge",`+derived+","+signed+",[true,false,false]]", string(out))
}

// The packages are pinned, and the lock file belongs to this package.json. This is also checked
// without Node.
func TestPackagesArePinned(t *testing.T) {
	t.Parallel()
	read := func(name string, v any) {
		text, err := os.ReadFile("javascript/" + name)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, v))
	}
	var wants struct{ Dependencies map[string]string }
	read("package.json", &wants)
	require.Len(t, wants.Dependencies, 2)
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dependencies       map[string]string
		}
	}
	read("package-lock.json", &lock)
	require.Equal(t, wants.Dependencies, lock.Packages[""].Dependencies)
	for name, version := range wants.Dependencies {
		require.Regexp(t, `^\d+\.\d+\.\d+$`, version, name)
		require.Equal(t, version, lock.Packages["node_modules/"+name].Version)
	}
	for name, p := range lock.Packages {
		require.True(t, name == "" || p.Integrity != "", name)
	}
}
