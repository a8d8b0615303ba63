package deploy_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// words of PromQL and of Grafana that the files use.
var language = strings.Fields(`sum max min count by rate increase histogram_quantile unless or absent vector label_values`)

// added are the labels that Prometheus adds to each series.
var added = []string{"instance", "job"}

var (
	text     = regexp.MustCompile(`"[^"]*"`)
	duration = regexp.MustCompile(`\[[^\]]*\]`)
	word     = regexp.MustCompile(`[A-Za-z_:][A-Za-z0-9_:]*`)
	used     = regexp.MustCompile(`\$labels\.(\w+)`)
)

// misnamed are the names in a query that are neither series of the code nor labels of the series
// that it asks.
func misnamed(known map[string]instrument, query string) (wrong, labels []string) {
	bare := duration.ReplaceAllString(text.ReplaceAllString(query, ""), "")
	words := word.FindAllString(bare, -1)
	labels = slices.Clone(added)
	for _, w := range words {
		labels = append(labels, known[w].labels...)
	}
	if len(labels) == len(added) {
		wrong = append(wrong, "no metric")
	}
	for _, w := range words {
		if _, metric := known[w]; !metric && !slices.Contains(labels, w) && !slices.Contains(language, w) {
			wrong = append(wrong, w)
		}
	}
	if strings.Count(bare, "(") != strings.Count(bare, ")") || strings.Count(bare, "{") != strings.Count(bare, "}") {
		wrong = append(wrong, "brackets")
	}
	return wrong, labels
}

func TestQueriesThatNameNothing(t *testing.T) {
	t.Parallel()
	known := series(t)
	for query, want := range map[string][]string{
		`sum by (quipu_flow) (quipu_jobs{quipu_state="open"}) > 1`: nil,
		`rate(quipu_job[5m])`:                   {"no metric", "quipu_job"},
		`quipu_jobs{quipu_topic="x"}`:           {"quipu_topic"},
		`avg(quipu_jobs)`:                       {"avg"},
		`rate(quipu_commit_seconds[1m])`:        {"no metric", "quipu_commit_seconds"},
		`max by (le) (quipu_commit_seconds_sum`: {"brackets"},
		`vector(1)`:                             {"no metric"},
	} {
		wrong, _ := misnamed(known, query)
		require.Equal(t, want, wrong, query)
	}
}

type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// O5: each alert asks for metrics that there are, and has its runbook. No runbook is left over.
func TestO5AlertsHaveRunbooks(t *testing.T) {
	t.Parallel()
	var file rules
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(read(t, "deploy/prometheus/alerts.yml")), &file, yaml.Strict()))
	known, runbooks := series(t), read(t, "docs/runbooks.md")
	var alerts []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			wrong, labels := misnamed(known, r.Expr)
			require.Empty(t, wrong, r.Alert)
			require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
			for _, m := range used.FindAllStringSubmatch(r.Annotations["summary"], -1) {
				require.Contains(t, labels, m[1], r.Alert)
			}
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			require.Equal(t, "https://github.com/quipu-journal/quipu/blob/main/docs/runbooks.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
			before, _, found := strings.Cut(runbooks, "It waits for the morning")
			require.True(t, found)
			require.Equal(t, r.Labels["severity"] == "page", strings.Contains(before, "["+r.Alert+"](#"), "%s stands below its severity", r.Alert)
			alerts = append(alerts, r.Alert)
		}
	}
	var told []string
	for _, part := range strings.Split(runbooks, "\n## ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		told = append(told, name)
		for _, says := range []string{"**It means**", "**Look**", "**Press**"} {
			require.Contains(t, body, says, name)
		}
	}
	require.Equal(t, alerts, told)
}

// O5: the metrics and the flags that the pages for operators name are there; of commands
// tests/house knows.
func TestO5PagesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	known, commands := series(t), read(t, "docs/cli.md")
	for _, x := range instruments(t) {
		known[x.name] = x // also of a histogram
		for _, l := range x.labels {
			known[l] = x
		}
	}
	for _, name := range []string{"docs/runbooks.md", "docs/metrics.md", "deploy/README.md"} {
		page := read(t, name)
		for _, m := range regexp.MustCompile("`(quipu_[a-z_]+)[`{]").FindAllStringSubmatch(page, -1) {
			require.Contains(t, known, m[1], name)
		}
		for _, m := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(page, -1) {
			require.Regexp(t, regexp.MustCompile("(?m)^\\| `"+m[1]+"[ `]"), commands, name)
		}
	}
}

type panel struct {
	Title   string `json:"title"`
	Type    string `json:"type"`
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// O5: each panel of the dashboard asks for metrics that there are, of one space, and none lies
// upon another.
func TestO5Dashboard(t *testing.T) {
	t.Parallel()
	var board struct {
		UID    string  `json:"uid"`
		Panels []panel `json:"panels"`
		Vars   struct {
			List []struct {
				Name  string          `json:"name"`
				Query json.RawMessage `json:"query"`
			} `json:"list"`
		} `json:"templating"`
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/quipu.json")), &board))
	known := series(t)
	require.Len(t, board.Vars.List, 2)
	require.Equal(t, "space", board.Vars.List[1].Name)
	var query struct {
		Query string `json:"query"`
	}
	require.NoError(t, json.Unmarshal(board.Vars.List[1].Query, &query))
	wrong, _ := misnamed(known, query.Query)
	require.Empty(t, wrong)
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		require.NotEmpty(t, p.Title)
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s lies upon it", p.Title)
				taken[at] = p.Title
			}
		}
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, q := range p.Targets {
			wrong, _ := misnamed(known, q.Expr)
			require.Empty(t, wrong, "%s: %s", p.Title, q.Expr)
			asks := word.FindAllString(duration.ReplaceAllString(text.ReplaceAllString(q.Expr, ""), ""), -1)
			metrics := slices.DeleteFunc(asks, func(w string) bool { _, is := known[w]; return !is })
			require.Equal(t, len(metrics), strings.Count(q.Expr, `{quipu_space="$space"`), "%s: of one space", p.Title)
		}
	}
}
