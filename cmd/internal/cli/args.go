package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Args takes least to most arguments; a most below 0 is no limit. Its errors name the missing
// arguments by their names in cmd.Use, and show the usage line.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			missing := strings.Fields(cmd.Use)[1:][len(args):least]
			for i := range missing {
				missing[i] = strings.TrimSuffix(missing[i], "...")
			}
			return fmt.Errorf("missing: %s\nusage: %s", strings.Join(missing, " and "), cmd.UseLine())
		case most >= 0 && len(args) > most:
			return fmt.Errorf("%.40q: at most %d arguments are taken, these are %d\nusage: %s", args[most], most, len(args), cmd.UseLine())
		}
		return nil
	}
}
