package deploy_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu"
)

// drainSlack is how much longer than QUIPU_DRAIN a worker may take to end.
const drainSlack = 15 * time.Second

type ref struct {
	Name string `yaml:"name"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	TimeoutSeconds int `yaml:"timeoutSeconds"`
}

type container struct {
	Image   string   `yaml:"image"`
	Command []string `yaml:"command"`
	Args    []string `yaml:"args"`
	Env     []ref    `yaml:"env"`
	EnvFrom []struct {
		ConfigMap *ref `yaml:"configMapRef"`
		Secret    *ref `yaml:"secretRef"`
	} `yaml:"envFrom"`
	Ports []struct {
		Name string `yaml:"name"`
		Port int    `yaml:"containerPort"`
	} `yaml:"ports"`
	Live     *probe `yaml:"livenessProbe"`
	Ready    *probe `yaml:"readinessProbe"`
	Security struct {
		Escalation   *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRoot bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
}

type object struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Data       map[string]string `yaml:"data"`
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		} `yaml:"selector"`
		Template struct {
			Metadata struct {
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"metadata"`
			Spec struct {
				Grace    int   `yaml:"terminationGracePeriodSeconds"`
				Token    *bool `yaml:"automountServiceAccountToken"`
				Security struct {
					NonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []container `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
		Target   ref `yaml:"scaleTargetRef"`
		Min      int `yaml:"minReplicaCount"`
		Max      int `yaml:"maxReplicaCount"`
		Triggers []struct {
			Type     string            `yaml:"type"`
			Metadata map[string]string `yaml:"metadata"`
		} `yaml:"triggers"`
	} `yaml:"spec"`
}

// objects are all manifests, by kind and name.
func objects(t *testing.T) map[string]object {
	t.Helper()
	files, err := filepath.Glob(root + "deploy/kubernetes/*.yaml")
	require.NoError(t, err)
	files = append(files, root+"deploy/kubernetes/example/secrets.yaml")
	out := map[string]object{}
	for _, name := range files {
		f, err := os.Open(name)
		require.NoError(t, err)
		d := yaml.NewDecoder(f)
		for {
			var o object
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err, name)
			}
			id := o.Kind + "/" + o.Metadata.Name
			require.NotContains(t, out, id)
			require.Equal(t, "quipu", o.Metadata.Labels["app.kubernetes.io/part-of"], id)
			out[id] = o
		}
		require.NoError(t, f.Close())
	}
	return out
}

// options are the flags and variables of a command, by the table of docs/cli.md below a heading.
func options(t *testing.T, command string) (flags, variables []string) {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "docs/cli.md"), "\n## `"+command+"`\n")
	require.True(t, found)
	part, _, _ := strings.Cut(rest, "\n### ")
	for _, m := range regexp.MustCompile("(?m)^\\| `(--[a-z-]+)[^|]*\\| (?:`(QUIPU_[A-Z_]+)`)?").FindAllStringSubmatch(part, -1) {
		flags, variables = append(flags, m[1]), append(variables, m[2])
	}
	require.NotEmpty(t, flags)
	return flags, variables
}

// O5: a container runs without rights that it does not need, and gets its configuration and one
// secret, which are there, by names that the command knows.
func TestO5ContainersAreConfigured(t *testing.T) {
	t.Parallel()
	all := objects(t)
	flags, variables := options(t, "worker")
	secrets := map[string]string{}
	for id, o := range all {
		for _, c := range o.Spec.Template.Spec.Containers {
			require.True(t, o.Spec.Template.Spec.Security.NonRoot, id)
			require.NotNil(t, o.Spec.Template.Spec.Token, id)
			require.False(t, *o.Spec.Template.Spec.Token, "%s: it does not ask Kubernetes", id)
			require.NotNil(t, c.Security.Escalation, id)
			require.False(t, *c.Security.Escalation, id)
			require.True(t, c.Security.ReadOnlyRoot, id)
			require.Equal(t, []string{"ALL"}, c.Security.Capabilities.Drop, id)
			require.Regexp(t, `:\d+\.\d+\.\d+$`, c.Image, id)
			for _, v := range c.Env {
				require.Contains(t, append([]string{"GOMEMLIMIT"}, variables...), v.Name, id)
			}
			for _, a := range c.Args {
				require.True(t, !strings.HasPrefix(a, "--") || slices.Contains(flags, a), "%s: %s", id, a)
			}
			require.Len(t, c.EnvFrom, 2, id)
			require.Contains(t, all, "ConfigMap/"+c.EnvFrom[0].ConfigMap.Name, id)
			secret := c.EnvFrom[1].Secret.Name
			require.Contains(t, all, "Secret/"+secret, id)
			require.Empty(t, secrets[secret], "%s has a login of its own", id)
			secrets[secret] = id
		}
	}
	for id, o := range all {
		if o.Kind == "Secret" {
			require.NotEmpty(t, secrets[o.Metadata.Name], "somebody uses %s", id)
			require.NotEmpty(t, o.StringData["QUIPU_POSTGRES"], id)
		}
		for name, value := range o.StringData {
			require.Contains(t, variables, name, id)
			require.Contains(t, value, "CHANGE-ME", "%s: no secret stands here", id)
		}
		for name := range o.Data {
			require.Contains(t, variables, name, id)
		}
	}
	require.Equal(t, []string{"quipu", "migrate", "--roles"}, all["Job/quipu-migrate"].Spec.Template.Spec.Containers[0].Command)
	require.Equal(t, "true", all["ConfigMap/quipu"].Data["QUIPU_NO_MIGRATE"], "processes have no rights to")
}

// S8: each process has a login of its own, and deploy/README.md gives it the one role that it plays; the workers are
// bound to the built-in topics of the image.
func TestS8LoginsHaveOneRole(t *testing.T) {
	t.Parallel()
	granted := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +quipu grant (\w+) (\w+)(.*)$`).FindAllStringSubmatch(read(t, "deploy/README.md"), -1) {
		granted[m[2]] = m[1] + m[3]
	}
	logins := map[string]string{}
	for id, o := range objects(t) {
		if o.Kind != "Secret" {
			continue
		}
		for _, url := range o.StringData {
			login := regexp.MustCompile(`^\w+://(\w+):`).FindStringSubmatch(url)
			require.NotNil(t, login, "%s: %s", id, url)
			require.Equal(t, strings.TrimPrefix(o.Metadata.Name, "quipu-"), login[1], "the login is that of the part")
			logins[login[1]] = id
		}
	}
	delete(logins, "owner") // it makes the space
	require.Equal(t, map[string]string{"engine": "engine", "workers": "worker echo fail http sleep", "retention": "retention"}, granted)
	require.Len(t, logins, len(granted))
}

// O5: processes play all roles, each has probes, a time to drain, and a port that is scraped.
func TestO5ProcessesLiveAndDrain(t *testing.T) {
	t.Parallel()
	all := objects(t)
	config := all["ConfigMap/quipu"].Data
	drain, err := time.ParseDuration(config["QUIPU_DRAIN"])
	require.NoError(t, err)
	var roles []quipu.Role
	for id, o := range all {
		if o.Kind != "Deployment" {
			continue
		}
		pod := o.Spec.Template
		require.Equal(t, o.Spec.Selector.MatchLabels, pod.Metadata.Labels, id)
		require.Greater(t, time.Duration(pod.Spec.Grace)*time.Second, drain+drainSlack, "%s: a drain has its time", id)
		c := pod.Spec.Containers[0]
		require.Equal(t, "http", c.Ports[0].Name, id)
		port := strings.TrimPrefix(config["QUIPU_HTTP"], "0.0.0.0:")
		require.EqualValues(t, port, pod.Metadata.Annotations["prometheus.io/port"], id)
		require.Equal(t, port, strconv.Itoa(c.Ports[0].Port), id)
		require.Equal(t, "/metrics", pod.Metadata.Annotations["prometheus.io/path"], id)
		require.Equal(t, []string{"/healthz", "http"}, []string{c.Live.HTTPGet.Path, c.Live.HTTPGet.Port}, id)
		require.Equal(t, []string{"/readyz", "http"}, []string{c.Ready.HTTPGet.Path, c.Ready.HTTPGet.Port}, id)
		require.Greater(t, c.Ready.TimeoutSeconds, 2, "%s: /readyz waits two seconds for its servers", id)
		require.Equal(t, "--roles", c.Args[0], id)
		played := strings.Split(c.Args[1], ",")
		for _, r := range played {
			roles = append(roles, quipu.Role(r))
		}
		nats := slices.Contains(played, "engine") || slices.Contains(played, "workers")
		_, given := all["Secret/"+c.EnvFrom[1].Secret.Name].StringData["QUIPU_NATS"]
		require.Equal(t, nats, given, "%s gets the login of NATS where it needs one", id)
	}
	require.ElementsMatch(t, quipu.AllRoles(), roles, "each role is played once")
	for id, o := range all {
		for name, value := range o.Spec.Selector.MatchLabels {
			require.Contains(t, []string{"quipu", "engine", "workers", "retention"}, value, "%s: %s", id, name)
		}
	}
}

// O5: workers, and nothing else, are scaled, by metrics that there are, of the space that they
// serve.
func TestO5WorkersAreScaled(t *testing.T) {
	t.Parallel()
	all, series := objects(t), series(t)
	o := all["ScaledObject/quipu-workers"]
	target, found := all["Deployment/"+o.Spec.Target.Name]
	require.True(t, found)
	require.Equal(t, []string{"--roles", "workers"}, target.Spec.Template.Spec.Containers[0].Args)
	require.Less(t, o.Spec.Min, o.Spec.Max)
	require.Len(t, o.Spec.Triggers, 1)
	require.Equal(t, "prometheus", o.Spec.Triggers[0].Type)
	query := o.Spec.Triggers[0].Metadata["query"]
	wrong, _ := misnamed(series, query)
	require.Empty(t, wrong, query)
	require.Equal(t, 2, strings.Count(query, `quipu_space="`+all["ConfigMap/quipu"].Data["QUIPU_SPACE"]+`"`))
	require.Regexp(t, `^\d+$`, o.Spec.Triggers[0].Metadata["threshold"])
}
