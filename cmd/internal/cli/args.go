package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Args takes least to most arguments; a most below 0 is no limit. Its errors name the missing
// arguments by their names in cmd.Use, and show the usage line. What a command with others below it
// does not take is the name of one that it does not have.
func Args(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			missing := strings.Fields(cmd.Use)[1:][len(args):least]
			for i := range missing {
				missing[i] = strings.TrimSuffix(missing[i], "...")
			}
			return fmt.Errorf("missing: %s\nusage: %s", strings.Join(missing, " and "), cmd.UseLine())
		case most < 0 || len(args) <= most:
			return nil
		case most == 0 && cmd.HasSubCommands():
			return fmt.Errorf("unknown command %.40q for %q", args[0], cmd.CommandPath())
		case most == 0:
			return fmt.Errorf("%.40q: no arguments are taken\nusage: %s", args[0], cmd.UseLine())
		case most == 1:
			return fmt.Errorf("%.40q: at most 1 argument is taken, these are %d\nusage: %s", args[1], len(args), cmd.UseLine())
		default:
			return fmt.Errorf("%.40q: at most %d arguments are taken, these are %d\nusage: %s",
				args[most], most, len(args), cmd.UseLine())
		}
	}
}
