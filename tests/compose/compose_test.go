package compose_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

const (
	composePath    = "../../docker-compose.yml"
	dockerfilePath = "../../Dockerfile"
)

type file struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Image       string               `yaml:"image"`
	Build       string               `yaml:"build"`
	Entrypoint  []string             `yaml:"entrypoint"`
	Command     []string             `yaml:"command"`
	Profiles    []string             `yaml:"profiles"`
	Environment map[string]string    `yaml:"environment"`
	Ports       []string             `yaml:"ports"`
	Volumes     []string             `yaml:"volumes"`
	DependsOn   map[string]condition `yaml:"depends_on"`
	Healthcheck *healthcheck         `yaml:"healthcheck"`
}

type condition struct {
	Condition string `yaml:"condition"`
}

type healthcheck struct {
	Test     []string `yaml:"test"`
	Interval string   `yaml:"interval"`
	Timeout  string   `yaml:"timeout"`
	Retries  int      `yaml:"retries"`
}

func load(t *testing.T) file {
	t.Helper()
	text, err := os.ReadFile(composePath)
	require.NoError(t, err)
	var f file
	require.NoError(t, yaml.Unmarshal(text, &f))
	return f
}

// pinned is an image with its whole version, for people, and its digest, for machines.
var pinned = regexp.MustCompile(`:v?\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}( |$)`)

// S16: an image that is built is built from pinned ones.
func TestS16DockerfileIsPinned(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(dockerfilePath)
	require.NoError(t, err)
	bases := regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, bases)
	for _, base := range bases {
		require.Regexp(t, pinned, base[1])
	}
}

// The binaries of an image know their build, which entries of the journal name: the linker sets a
// variable that is there.
func TestImagesKnowTheirBuild(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(dockerfilePath)
	require.NoError(t, err)
	set := regexp.MustCompile(`-X github\.com/quipu-journal/quipu/([\w/]+)\.(\w+)=\$build`).FindStringSubmatch(string(text))
	require.NotNil(t, set, "the Dockerfile tells the linker no build")
	files, err := filepath.Glob("../../" + set[1] + "/*.go")
	require.NoError(t, err)
	declared := false
	for _, name := range files {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		declared = declared || regexp.MustCompile(`(?m)^var `+set[2]+` string$`).Match(source)
	}
	require.True(t, declared, "package %s has no variable %s", set[1], set[2])
	sum := regexp.MustCompile(`\$\((find [^)]*)\)`).FindStringSubmatch(string(text))
	require.NotNil(t, sum, "without a name the build is the sum of the sources")
	dir := t.TempDir()
	name := func(content string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(content), 0o600))
		cmd := exec.CommandContext(t.Context(), "sh", "-c", sum[1])
		cmd.Dir = dir
		out, err := cmd.Output()
		require.NoError(t, err)
		require.Regexp(t, `^[0-9a-f]{16}\n$`, string(out))
		return string(out)
	}
	require.Equal(t, name("package a"), name("package a"))
	require.NotEqual(t, name("package a"), name("package b"), "other sources are another build")
}

// isProcess says that a service is a process of the image's own command, worker.
func isProcess(name string) bool {
	return strings.HasPrefix(name, "worker-") || name == "engine" || name == "retention"
}

// ends says that a service does one thing and ends: the migration, and the commands of people.
func ends(name string, s *service) bool { return name == "space" || len(s.Profiles) > 0 }

func TestServices(t *testing.T) {
	t.Parallel()
	f := load(t)
	var names []string
	for name, s := range f.Services {
		names = append(names, name)
		require.True(t, (s.Image == "") != (s.Build == ""), "%s has either an image or a build", name)
		if s.Image != "" {
			require.Regexp(t, pinned, s.Image, "%s is pinned to a version and a digest (S16)", name)
		}
	}
	slices.Sort(names)
	require.Equal(t, []string{
		"client", "console", "engine", "grafana", "jaeger", "nats", "operator", "owner", "postgres", "prometheus",
		"retention", "space", "verifier", "worker-a", "worker-b",
	}, names)
}

func TestHealthChecksAndDependencies(t *testing.T) {
	t.Parallel()
	f := load(t)
	for name, s := range f.Services {
		for target, on := range s.DependsOn {
			require.Contains(t, f.Services, target, "%s depends on it", name)
			want := "service_healthy"
			if target == "space" {
				want = "service_completed_successfully"
			}
			require.Equal(t, want, on.Condition, "%s waits until %s is ready", name, target)
		}
		if ends(name, &s) {
			require.Nil(t, s.Healthcheck, "%s ends", name)
			continue
		}
		require.NotNil(t, s.Healthcheck, "%s has a health check", name)
		require.GreaterOrEqual(t, len(s.Healthcheck.Test), 2, name)
		require.Equal(t, "CMD", s.Healthcheck.Test[0], name)
		require.NotEmpty(t, s.Healthcheck.Interval, name)
		require.NotEmpty(t, s.Healthcheck.Timeout, name)
		require.Positive(t, s.Healthcheck.Retries, name)
		if isProcess(name) {
			require.Len(t, s.DependsOn, 3, "%s needs the space, NATS and Jaeger", name)
		}
	}
}

func TestPortsAreUniqueAndOnLoopback(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for name, s := range load(t).Services {
		for _, port := range s.Ports {
			parts := strings.Split(port, ":")
			require.Len(t, parts, 3, "%s: %s", name, port)
			require.Equal(t, "127.0.0.1", parts[0], "%s: nothing beyond loopback (4.5)", name)
			require.NotContains(t, taken, parts[1], "%s takes a port of %s", name, taken[parts[1]])
			taken[parts[1]] = name
		}
	}
	require.NotEmpty(t, taken)
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	f := load(t)
	used := map[string]bool{}
	for name, s := range f.Services {
		for _, volume := range s.Volumes {
			source, _, found := strings.Cut(volume, ":")
			require.True(t, found, "%s: %s", name, volume)
			if strings.HasPrefix(source, "./") {
				require.True(t, strings.HasSuffix(volume, ":ro"), "%s reads %s only", name, source)
				continue
			}
			require.Contains(t, f.Volumes, source, name)
			used[source] = true
		}
	}
	require.Len(t, used, len(f.Volumes), "no volume is declared for nothing")
	for _, name := range []string{"postgres", "nats"} {
		require.NotEmpty(t, f.Services[name].Volumes, "%s keeps its data over a restart", name)
	}
}

// TestEnvironment: a worker that ignored a misspelt variable would run with a
// default, so only names that are known are allowed.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	required := []string{"QUIPU_POSTGRES", "QUIPU_SPACE", "QUIPU_ROLES", "QUIPU_NO_MIGRATE", "QUIPU_HTTP", "OTEL_EXPORTER_OTLP_ENDPOINT"}
	known := append([]string{"QUIPU_NATS", "QUIPU_FLOWS", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SERVICE_NAME"}, required...)
	f := load(t)
	for name, s := range f.Services {
		if !isProcess(name) {
			continue
		}
		for variable := range s.Environment {
			require.Contains(t, known, variable, name)
		}
		for _, variable := range required {
			require.NotEmpty(t, s.Environment[variable], "%s: %s", name, variable)
		}
		require.Contains(t, s.Environment["QUIPU_POSTGRES"], "@postgres:5432/"+f.Services["postgres"].Environment["POSTGRES_DB"])
		if name != "retention" {
			require.Contains(t, s.Environment["QUIPU_NATS"], "@nats:4222")
		}
		roles := map[string]string{"engine": "engine,schedule", "retention": "retention"}[name]
		require.Equal(t, cmp.Or(roles, "workers"), s.Environment["QUIPU_ROLES"], name)
		port, everywhere := strings.CutPrefix(s.Environment["QUIPU_HTTP"], "0.0.0.0:")
		require.True(t, everywhere, "%s: Prometheus reads it (O4)", name)
		require.Empty(t, s.Ports, "%s: and nobody outside", name)
		require.Contains(t, strings.Join(s.Healthcheck.Test, " "), "http://127.0.0.1:"+port+"/healthz", "%s: its health is asked where it is served", name)
		if name == "engine" {
			require.Contains(t, strings.Join(s.Volumes, " "), ":"+s.Environment["QUIPU_FLOWS"]+":ro", name)
		}
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(dockerfilePath)
	require.NoError(t, err)
	dockerfile := string(text)
	for _, command := range []string{"./cmd/worker", "./cmd/quipu", "./cmd/journal-verify"} {
		require.Contains(t, dockerfile, command)
	}
	require.Contains(t, dockerfile, "CGO_ENABLED=0", "static")
	user := regexp.MustCompile(`(?m)^USER (\S+)$`).FindAllStringSubmatch(dockerfile, -1)
	require.Len(t, user, 1)
	require.NotRegexp(t, regexp.MustCompile(`^(0|root)\b`), user[0][1], "not root")
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	require.NotNil(t, language)
	require.Contains(t, dockerfile, "golang:"+language[1]+".", "builds with the module's Go")
}

// TestComposeConfig has Compose itself read the file where it is installed.
func TestComposeConfig(t *testing.T) {
	t.Parallel()
	if err := exec.CommandContext(t.Context(), "docker", "compose", "version").Run(); err != nil {
		t.Skipf("docker compose is not installed: %v", err)
	}
	out, err := exec.CommandContext(t.Context(), "docker", "compose", "-f", composePath, "config", "--quiet").CombinedOutput()
	require.NoError(t, err, string(out))
}

// O5: Prometheus reads every worker and the alerts, and Grafana reads Prometheus and the dashboard.
func TestO5Monitoring(t *testing.T) {
	t.Parallel()
	f := load(t)
	decode := func(name string, v any) {
		text, err := os.ReadFile("../../deploy/" + name)
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, v))
	}
	var prometheus struct {
		Rules   []string `yaml:"rule_files"`
		Scrapes []struct {
			Static []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	decode("prometheus/prometheus.yml", &prometheus)
	var workers []string
	for name, s := range f.Services {
		if isProcess(name) {
			workers = append(workers, name+strings.TrimPrefix(s.Environment["QUIPU_HTTP"], "0.0.0.0"))
		}
	}
	require.ElementsMatch(t, workers, prometheus.Scrapes[0].Static[0].Targets)
	require.Equal(t, []string{"/etc/prometheus/alerts.yml"}, prometheus.Rules)
	require.Contains(t, f.Services["prometheus"].Volumes, "./deploy/prometheus:/etc/prometheus:ro")
	require.FileExists(t, "../../deploy/prometheus/alerts.yml")

	var source struct {
		Datasources []struct {
			Type string `yaml:"type"`
			URL  string `yaml:"url"`
		} `yaml:"datasources"`
	}
	decode("grafana/provisioning/datasources/prometheus.yml", &source)
	require.Equal(t, "prometheus", source.Datasources[0].Type)
	require.Equal(t, "http://prometheus:9090", source.Datasources[0].URL)
	var boards struct {
		Providers []struct {
			Options map[string]string `yaml:"options"`
		} `yaml:"providers"`
	}
	decode("grafana/provisioning/dashboards/quipu.yml", &boards)
	require.Contains(t, f.Services["grafana"].Volumes, "./deploy/grafana/provisioning:/etc/grafana/provisioning:ro")
	require.Contains(t, f.Services["grafana"].Volumes, "./deploy/grafana/quipu.json:"+boards.Providers[0].Options["path"]+"/quipu.json:ro")
	require.FileExists(t, "../../deploy/grafana/quipu.json")
}
