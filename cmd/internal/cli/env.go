package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// EnvPrefix begins the name of every flag's variable.
const EnvPrefix = "QUIPU_"

// envKey marks a flag that the environment may set.
const envKey = "quipu-env"

// FromEnv lets the environment set the named flags, too: --max-batch from QUIPU_MAX_BATCH. An
// empty variable counts as unset.
func FromEnv(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := set.Lookup(name)
		if f == nil {
			panic("cli: no flag " + name)
		}
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[envKey] = []string{EnvPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))}
	}
}

// EnvOf returns the variable of the flag, "" for none.
func EnvOf(f *pflag.Flag) string {
	if v := f.Annotations[envKey]; len(v) == 1 {
		return v[0]
	}
	return ""
}

// ReadEnv sets flags of cmd that were not given from their variables, and returns the names of
// those it set.
func ReadEnv(cmd *cobra.Command, getenv func(string) string) (set map[string]bool, err error) {
	set = map[string]bool{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := EnvOf(f)
		if name == "" || f.Changed || err != nil {
			return
		}
		value := getenv(name)
		if value == "" {
			return
		}
		if e := cmd.Flags().Set(f.Name, value); e != nil {
			err = Exit(CodeUsage, fmt.Errorf("environment variable %s: %w", name, badValue(e)))
			return
		}
		set[f.Name] = true
	})
	return set, err
}

// takes says what a flag takes, by the type of its value.
var takes = map[string]string{
	"int": "a whole number", "int64": "a whole number", "bool": "true or false", "duration": "a time such as 500ms, 30s or 72h",
}

// badValue says what a flag takes, where the error of pflag has only what the parser of the value
// says. Other errors stay.
func badValue(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	use, ok := takes[bad.GetFlag().Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %q: use %s", bad.GetFlag().Name, bad.GetValue(), use)
}
