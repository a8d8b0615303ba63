package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
)

// variable is one that the exporters or the SDK read by themselves. They put their default in the
// place of a value that they cannot use, and say so at most in a log that nobody reads. check says
// instead what to use. The error of a secret one must not show the value.
type variable struct {
	name   string
	secret bool
	check  func(value string) error
}

// ofExporter are the variables of an exporter of OTLP, behind OTEL_EXPORTER_OTLP_ and the signal.
var ofExporter = []variable{
	{"HEADERS", true, checkPairs},
	{"COMPRESSION", false, oneOf("gzip", "none")},
	{"TIMEOUT", false, atLeast(0, " of milliseconds")},
	{"INSECURE", false, checkBool},
	{"CERTIFICATE", false, checkAuthorities},
	{"CLIENT_CERTIFICATE", false, nil}, // with its key, see checkExporter
	{"CLIENT_KEY", false, nil},
}

// ofSignal are the variables of the SDK.
var ofSignal = map[string][]variable{
	"TRACES": {
		{"OTEL_BSP_SCHEDULE_DELAY", false, atLeast(0, " of milliseconds")},
		{"OTEL_BSP_EXPORT_TIMEOUT", false, atLeast(0, " of milliseconds")},
		{"OTEL_BSP_MAX_QUEUE_SIZE", false, atLeast(1, "")},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", false, atLeast(1, "")},
		{"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", false, atLeast(-1, "")},
		{"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", false, atLeast(-1, "")},
		{"OTEL_SPAN_EVENT_COUNT_LIMIT", false, atLeast(-1, "")},
		{"OTEL_SPAN_LINK_COUNT_LIMIT", false, atLeast(-1, "")},
		{"OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT", false, atLeast(-1, "")},
		{"OTEL_LINK_ATTRIBUTE_COUNT_LIMIT", false, atLeast(-1, "")},
		{"OTEL_ATTRIBUTE_COUNT_LIMIT", false, atLeast(-1, "")},
		{"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", false, atLeast(-1, "")},
	},
	"METRICS": {
		{"OTEL_METRIC_EXPORT_INTERVAL", false, atLeast(1, " of milliseconds")},
		{"OTEL_METRIC_EXPORT_TIMEOUT", false, atLeast(1, " of milliseconds")},
		{"OTEL_METRICS_EXEMPLAR_FILTER", false, oneOf("always_on", "always_off", "trace_based")},
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", false, oneOf("cumulative", "delta", "lowmemory")},
		{
			"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", false,
			oneOf("explicit_bucket_histogram", "base2_exponential_bucket_histogram"),
		},
	},
}

// checkExporter refuses the first variable of a signal that its exporter or the SDK cannot use.
func (c Config) checkExporter(signal, protocol string) error {
	if err := c.check(variable{"OTEL_RESOURCE_ATTRIBUTES", false, checkPairs}); err != nil {
		return err
	}
	for _, of := range []string{"OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_" + signal + "_"} {
		if err := c.check(variable{of + "ENDPOINT", true, checkEndpoint(protocol)}); err != nil {
			return err
		}
		for _, v := range ofExporter {
			v.name = of + v.name
			if err := c.check(v); err != nil {
				return err
			}
		}
		if err := c.checkPair(of+"CLIENT_CERTIFICATE", of+"CLIENT_KEY"); err != nil {
			return err
		}
	}
	for _, v := range ofSignal[signal] {
		if err := c.check(v); err != nil {
			return err
		}
	}
	return nil
}

// check refuses a variable that is set, and cannot be used.
func (c Config) check(v variable) error {
	value := strings.TrimSpace(c.Getenv(v.name))
	if value == "" || v.check == nil {
		return nil
	}
	err := v.check(value)
	switch {
	case err == nil:
		return nil
	case v.secret:
		return fmt.Errorf("%w: %s: %w", ErrConfig, v.name, err)
	}
	return fmt.Errorf("%w: %s=%.80q: %w", ErrConfig, v.name, value, err)
}

// checkPair refuses a certificate that is there without its key, or does not belong to it.
func (c Config) checkPair(certificate, key string) error {
	cert, priv := strings.TrimSpace(c.Getenv(certificate)), strings.TrimSpace(c.Getenv(key))
	if cert == "" && priv == "" {
		return nil
	}
	if cert == "" || priv == "" {
		return fmt.Errorf("%w: use %s and %s together", ErrConfig, certificate, key)
	}
	if _, err := tls.LoadX509KeyPair(cert, priv); err != nil {
		return fmt.Errorf("%w: %s and %s: use the paths of a certificate and its key in PEM: %w", ErrConfig, certificate, key, err)
	}
	return nil
}

// checkEndpoint is the check of a collector's address, which may hold a password. gRPC takes what
// its resolvers know, such as unix:/path.
func checkEndpoint(protocol string) func(string) error {
	return func(value string) error {
		u, err := url.Parse(value)
		web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
		if err != nil || web && u.Host == "" || !web && (protocol != protocolGRPC || u.Scheme == "") {
			return errors.New("use a URL such as http://localhost:4318")
		}
		return nil
	}
}

// checkPairs is the check of names and values as NAME=VALUE, with commas and percent signs escaped.
func checkPairs(value string) error {
	for i, pair := range strings.Split(value, ",") {
		name, text, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		_, err := url.PathUnescape(text)
		if !found || name == "" || strings.ContainsAny(name, " \t") || err != nil {
			return fmt.Errorf("part %d: use NAME=VALUE, several separated by commas, with %% and commas in a value as %%25 and %%2C", i+1)
		}
	}
	return nil
}

// checkAuthorities is the check of a file with certificates.
func checkAuthorities(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = errors.New("it has no certificate")
	}
	if err != nil {
		return fmt.Errorf("use the path of a file with certificates in PEM: %w", err)
	}
	return nil
}

func oneOf(words ...string) func(string) error {
	return func(value string) error {
		if slices.Contains(words, value) {
			return nil
		}
		return fmt.Errorf("use %s", strings.Join(words, " or "))
	}
}

func checkBool(value string) error { return oneOf("true", "false")(strings.ToLower(value)) }

func atLeast(least int, of string) func(string) error {
	return func(value string) error {
		if n, err := strconv.ParseInt(value, 10, 32); err != nil || n < int64(least) {
			return fmt.Errorf("use a whole number%s, at least %d", of, least)
		}
		return nil
	}
}
