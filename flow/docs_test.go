package flow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/canonical"
	"github.com/quipu-journal/quipu/flow"
)

// table is a section as docs/flow.md shows it.
func table(s flow.Section) string {
	var b strings.Builder
	b.WriteString("| key | value | default | meaning and limits |\n|---|---|---|---|\n")
	var later []string
	for _, k := range s.Keys {
		if k.Later {
			later = append(later, "`"+k.Name+"`")
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Takes, k.Default, k.Meaning)
	}
	text := b.String()
	if len(later) == len(s.Keys) {
		return "Known, not supported by this build: " + strings.Join(later, ", ") + ".\n"
	}
	if len(later) > 0 {
		text += "\nKnown, not supported by this build: " + strings.Join(later, ", ") + ".\n"
	}
	return text
}

// The reference has every key with its default and limits, as the code has it.
func TestTheReferenceIsTheCode(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../docs/flow.md")
	require.NoError(t, err)
	for _, s := range flow.Sections() {
		if s.Name == "trigger" {
			require.Empty(t, s.Keys, "a trigger has no keys of its own")
			continue
		}
		require.Contains(t, string(src), table(s), "table of %s", s.Name)
	}
	for _, limit := range []struct {
		name  string
		value any
	}{
		{"activities of a flow", flow.MaxActivities},
		{"transitions that leave an activity", flow.MaxOut},
		{"bytes of a flow file", flow.MaxDefinitionBytes},
		{"values in a flow file", flow.MaxNodes},
		{"characters of a name", flow.MaxName},
		{"characters of a version", flow.MaxVersion},
		{"characters of a topic", flow.MaxTopic},
		{"bytes of an expression", flow.MaxExpression},
		{"fields that an expression mentions", flow.MaxMentions},
		{"cost of an evaluation", flow.MaxCost},
		{"bytes of a mapped value", flow.MaxMappedBytes},
		{"faults in a report", flow.MaxFaults},
		{"digits of a number", canonical.MaxDigits},
		{"power of ten of a number", canonical.MaxExponent},
		{"values nested in each other", canonical.MaxDepth},
	} {
		require.Contains(t, string(src), fmt.Sprintf("| %s | %v |\n", limit.name, limit.value))
	}
}

// The tables say what the constants are.
func TestTheTablesSayTheLimits(t *testing.T) {
	t.Parallel()
	text := map[string]string{}
	for _, s := range flow.Sections() {
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
		"flow.transitions": {fmt.Sprint(flow.MaxOut)},
		"worker.topic":     {fmt.Sprint(flow.MaxTopic)},
		"activity.timeout": {flow.MinDuration.String(), hours(flow.MaxDuration)},
		"activity.within":  {flow.MinDuration.String(), hours(flow.MaxDuration)},
		"retry.attempts":   {fmt.Sprint(flow.MaxAttempts), fmt.Sprint(flow.DefaultRetry.Attempts)},
		"retry.backoff":    {flow.MinDuration.String(), hours(flow.MaxDuration), flow.DefaultRetry.Backoff.String()},
		"retry.factor":     {fmt.Sprint(flow.MaxFactor), fmt.Sprint(flow.DefaultRetry.Factor)},
		"retry.max":        {hours(flow.MaxDuration), "1m"},
		"retry.jitter":     {fmt.Sprint(flow.DefaultRetry.Jitter)},
	} {
		for _, part := range parts {
			require.Contains(t, text[key], part, key)
		}
	}
}

// Every key that is not for later is taken, every other is refused by name.
func TestEveryKeyIsKnown(t *testing.T) {
	t.Parallel()
	for _, s := range flow.Sections() {
		for _, k := range s.Keys {
			var src string
			switch s.Name {
			case "flow":
				src = k.Name + ": x\n"
			case "activity", "worker":
				src = worker(k.Name + ": [x]")
			case "retry":
				src = worker("retry: {" + k.Name + ": x}")
			case "transition":
				src = transitions("  start: [w, {" + k.Name + ": x}]\n")
			default:
				src = head + "activities: {a: {type: " + s.Name + ", " + k.Name + ": x}}"
			}
			_, err := flow.Parse("f.yaml", []byte(src))
			require.NotContains(t, fmt.Sprint(err), "unknown key", "%s.%s", s.Name, k.Name)
			if k.Later && (s.Name == "flow" || s.Name == "activity" || s.Name == "worker") {
				require.ErrorContains(t, err, "does not support this key yet: "+k.Name)
			}
		}
	}
}
