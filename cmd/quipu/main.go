package main

import (
	"context"
	_ "time/tzdata" // so that schedules know their time zones on every machine

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// Exit codes besides those of package cli. A command on several items ends with the lowest code,
// other than 0, of one of them.
const (
	// a fault in a flow, an input or a key; or it exists with other content; or a job differs from its
	// journal
	codeRefused  = 3
	codeNotFound = 4 // no such job, flow, version or dead letter
	codeEnded    = 5 // a job failed or was interrupted
	codeTimeout  = 6 // a job did not end in time
	codeStale    = 7 // the dead letter, or the job to be interrupted, has ended already; or there is nothing to resume
	codeUndone   = 8 // show --effect: not done, not known, or not yet
)

const exitCodes = `Exit codes; a command about several items ends with the lowest one that is not 0:

- 0: done, or it was so already
- 1: it could not be done: the database is away, a file cannot be read
- 2: arguments, flags or configuration
- 3: refused: a flow has faults, an input is against its schema, a key, signal or entry cannot be used, or the version or key is there with other content; fsck: a job differs from its journal; check: something does not fit
- 4: not found: no such job, flow, version, dead letter or effect; signal --all: nobody waits
- 5: wait, call: a job failed or was interrupted
- 6: wait, call: a job had not ended in time
- 7: dead, interrupt, resume: it is decided already, the job has ended already, or there is nothing to resume
- 8: show --effect: the effect is not done, its outcome is not known, or it has not begun in a job that is open
- 130: ended by SIGINT or SIGTERM`

func main() { cli.Main(run) }

func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, newCommand(s), args, s)
}

func newCommand(s cli.Streams) *cobra.Command {
	a := &app{streams: s}
	root := &cobra.Command{
		Use:   "quipu",
		Short: "Operate the jobs of a space",
		Long: `Operate the jobs of a space.

The database is the first of these that is given: --postgres, --dev, QUIPU_POSTGRES,
QUIPU_DEV, .quipu/dev.json (which ` + "`worker dev`" + ` writes in its directory).
--nats is optional. Without it the database announces jobs, signals and interrupts to
the engines; an engine that misses the announcement finds them within about a second.

With --api URL, for people without a password of the database, these ask the HTTP API of a
running quipu console, and print the same; the others need the database:
` + remotely + `.

With -o json every command prints one JSON object per line. With - in the place of jobs
or dead letters, their keys or ids are read from standard input, one per line.

` + exitCodes,
	}
	a.persistent(root.PersistentFlags())
	root.AddCommand(a.migrateCommand(), a.deployCommand(), a.checkCommand(), a.activateCommand(), a.flowsCommand(),
		a.startCommand(), a.callCommand(), a.lsCommand(), a.topCommand(), a.processesCommand(),
		a.showCommand(), a.logCommand(), a.messagesCommand(), a.traceCommand(), a.whyCommand(), a.waitCommand(),
		a.signalCommand(),
		a.interruptCommand(), a.resumeCommand(), a.forkCommand(), a.deadCommand(),
		a.exportCommand(), a.replayCommand(), a.fsckCommand(), a.keysCommand(), a.topicKeyCommand(),
		a.permissionsCommand(), a.recoverCommand(), a.spaceCommand(), a.grantCommand(), a.revokeCommand(),
		a.tokenCommand(), a.consoleCommand())
	return root
}

// persistent defines the flags of every command.
func (a *app) persistent(f *pflag.FlagSet) {
	f.StringVar(&a.postgres, "postgres", "", "connection string of the database, as a `DSN`")
	f.StringVar(&a.nats, "nats", "", "`URL` of the NATS servers; a command that neither sends nor waits checks its form and does not connect")
	f.StringVar(&a.space, "space", "", "`NAME` of the space; default: default, or that of --dev")
	f.StringVar(&a.dev, "dev", "", "data `DIR` of a running worker dev")
	f.StringVar(&a.api, "api", "", "`URL` of the HTTP API to ask instead of the database; its token is taken from QUIPU_TOKEN")
	f.StringVarP(&a.output, "output", "o", "table", "`FORMAT` of what is printed: table or json")
	f.StringSliceVar(&a.accept, "accept", nil, "`LIST` of checks of the database that are accepted although they fail, such as fsync-off")
	cli.FromEnv(f, "postgres", "nats", "space", "dev", "api", "output", "accept")
	a.over.DefineConnection(f)
}
