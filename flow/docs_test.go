package flow_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/flow"
	"github.com/quipu-journal/quipu/internal/canonical"
)

// table is a section as docs/flow.md shows it.
func table(s flow.Section) string {
	var b strings.Builder
	b.WriteString("| key | value | default | meaning and limits |\n|---|---|---|---|\n")
	for _, k := range s.Keys {
		if k.Refused != "" {
			fmt.Fprintf(&b, "| `%s` | | | Refused: %s. |\n", k.Name, k.Refused)
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Takes, k.Default, k.Meaning)
	}
	return b.String()
}

// common is the table of the shared keys by type.
func common() string {
	types := []flow.Type{
		flow.TypeWorker, flow.TypeAwait, flow.TypeHook, flow.TypeSignal, flow.TypeCycle, flow.TypeInterrupt,
	}
	// A type takes these keys only in some of its forms.
	conditions := map[string]string{
		"hook.input": "pass-through", "hook.within": "waiting", "interrupt.output": "with `target`",
	}
	var b strings.Builder
	b.WriteString("| key | worker | await | hook | signal | cycle | interrupt |\n|---|---|---|---|---|---|---|\n")
	for _, key := range []string{"input", "output", "retry", "timeout", "within", "join"} {
		fmt.Fprintf(&b, "| `%s` |", key)
		for _, t := range types {
			takes := cmp.Or(conditions[string(t)+"."+key], "yes")
			if flow.Pointless(t, key) != "" {
				takes = "–"
			}
			fmt.Fprintf(&b, " %s |", takes)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The reference has every key with its default and limits, as in the code.
func TestTheReferenceIsTheCode(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../docs/flow.md")
	require.NoError(t, err)
	for _, s := range flow.Sections {
		if s.Name == "trigger" {
			require.Empty(t, s.Keys, "a trigger has no keys of its own")
			continue
		}
		require.Contains(t, string(src), table(s), "table of %s", s.Name)
	}
	require.Contains(t, string(src), common())
	for _, limit := range []struct {
		name  string
		value any
	}{
		{"activities of a flow", flow.MaxActivities},
		{"transitions that leave an activity", flow.MaxOut},
		{"transitions that meet in a join", flow.MaxIn},
		{"elements of an `each`", flow.MaxElements},
		{"passes of a cycle", flow.MaxPasses},
		{"bytes of the key of a signal", flow.MaxSignalKey},
		{"bytes of the key of a job", flow.MaxJobKey},
		{"bytes of the reason of an interrupt", flow.MaxReason},
		{"bytes of a flow file", flow.MaxDefinitionBytes},
		{"values in a flow file", flow.MaxNodes},
		{"characters of a name", flow.MaxName},
		{"characters of a version", flow.MaxVersion},
		{"characters of a topic", flow.MaxTopic},
		{"bytes of an expression", flow.MaxExpression},
		{"fields that an expression mentions", flow.MaxMentions},
		{"lists, objects and macros in each other", flow.MaxNesting},
		{"units of work of one step", flow.MaxStepCost},
		{"mappings and booleans in an input schema", flow.MaxSubschemas},
		{"values in an input schema", flow.MaxSchemaValues},
		{"bytes of the paths in an input schema", flow.MaxSchemaPaths},
		{"identifiers in an input schema", flow.MaxSchemaIDs},
		{"references in an input schema to what no keyword makes a subschema", flow.MaxLooseRefs},
		{"bytes of a pattern in an input schema", flow.MaxPattern},
		{"bytes and instructions of the patterns of an input schema", flow.MaxPatternSize},
		{"rules that the check of an input applies within each other", flow.MaxSchemaNesting},
		{"problems that a refused input lists", flow.MaxProblems},
		{"bytes of a mapped value", flow.MaxMappedBytes},
		{"faults in a report", flow.MaxFaults},
		{"digits of a number", canonical.MaxDigits},
		{"power of ten of a number", canonical.MaxExponent},
		{"values nested in each other", canonical.MaxDepth},
	} {
		require.Contains(t, string(src), fmt.Sprintf("| %s | %v |\n", limit.name, limit.value))
	}
}

// The tables agree with the constants.
func TestTheTablesSayTheLimits(t *testing.T) {
	t.Parallel()
	text := map[string]string{}
	for _, s := range flow.Sections {
		for _, k := range s.Keys {
			text[s.Name+"."+k.Name] = k.Meaning + " " + k.Default
		}
	}
	hours := func(d time.Duration) string { return fmt.Sprintf("%dh", int(d.Hours())) }
	for key, parts := range map[string][]string{
		"flow.flow":        {fmt.Sprint(flow.MaxName)},
		"flow.version":     {fmt.Sprint(flow.MaxVersion)},
		"flow.expire":      {flow.MinExpire.String(), hours(flow.MaxExpire)},
		"flow.activities":  {fmt.Sprint(flow.MaxActivities), fmt.Sprint(flow.MaxName)},
		"flow.transitions": {fmt.Sprint(flow.MaxOut), fmt.Sprint(flow.MaxIn)},
		"worker.topic":     {fmt.Sprint(flow.MaxTopic)},
		"worker.each":      {fmt.Sprint(flow.MaxElements)},
		"worker.parallel":  {fmt.Sprint(flow.MaxElements), fmt.Sprint(flow.DefaultParallel)},
		"await.id":         {fmt.Sprint(flow.MaxJobKey)},
		"hook.sleep":       {hours(flow.MaxSleep)},
		"hook.key":         {fmt.Sprint(flow.MaxSignalKey)},
		"hook.expires":     {flow.MinDuration.String(), hours(flow.MaxDuration)},
		"signal.key":       {fmt.Sprint(flow.MaxSignalKey)},
		"cycle.max":        {fmt.Sprint(flow.MaxPasses), fmt.Sprint(flow.DefaultPasses)},
		"interrupt.target": {fmt.Sprint(flow.MaxJobKey)},
		"interrupt.reason": {fmt.Sprint(flow.MaxReason)},
		"activity.timeout": {flow.MinDuration.String(), hours(flow.MaxDuration)},
		"activity.within":  {flow.MinDuration.String(), hours(flow.MaxDuration)},
		"retry.attempts": {
			fmt.Sprint(flow.MaxAttempts), fmt.Sprint(flow.DefaultRetry.Attempts),
			fmt.Sprint("await ", flow.DefaultAwaitRetry.Attempts),
		},
		"retry.backoff": {flow.MinDuration.String(), hours(flow.MaxDuration), flow.DefaultRetry.Backoff.String()},
		"retry.factor":  {fmt.Sprint(flow.MaxFactor), fmt.Sprint(flow.DefaultRetry.Factor)},
		"retry.max":     {hours(flow.MaxDuration), "1m"},
		"retry.jitter":  {fmt.Sprint(flow.DefaultRetry.Jitter)},
	} {
		for _, part := range parts {
			require.Contains(t, text[key], part, key)
		}
	}
}

// Every key of the reference is known; a key that this build refuses gives a reason.
func TestEveryKeyIsKnown(t *testing.T) {
	t.Parallel()
	refused := 0
	for _, s := range flow.Sections {
		for _, k := range s.Keys {
			src := head + "activities: {a: {type: " + s.Name + ", " + k.Name + ": x}}"
			switch s.Name {
			case "flow":
				src = k.Name + ": x\n"
			case "schedule":
				src = "schedule: {" + k.Name + ": x}\n"
			case "activity":
				src = worker(k.Name + ": [x]")
			case "retry":
				src = worker("retry: {" + k.Name + ": x}")
			case "transition":
				src = transitions("  start: [w, {" + k.Name + ": x}]\n")
			}
			_, err := flow.Parse("f.yaml", []byte(src))
			require.NotContains(t, fmt.Sprint(err), "unknown key", "%s.%s", s.Name, k.Name)
			if k.Refused != "" {
				refused++
				require.ErrorContains(t, err, k.Refused+": "+k.Name)
			}
		}
	}
	require.Equal(t, 1, refused, "space of an await")
}

// The examples of the reference deploy.
func TestTheExamplesDeploy(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../docs/flow.md")
	require.NoError(t, err)
	types := map[flow.Type]bool{}
	for i, block := range strings.Split(string(src), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		f, err := flow.Parse("f.yaml", []byte(text))
		require.NoError(t, err, "example %d", i)
		for _, a := range f.Activities() {
			types[a.Type] = true
		}
	}
	require.Len(t, types, 7, "one of every type")
}
