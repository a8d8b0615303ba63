package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
	"github.com/quipu-journal/quipu/internal/below"
	"github.com/quipu-journal/quipu/transport/nats"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List or rotate the keys that sign the messages of the space",
		Long: `List the keys with which the messages of the space are signed, without the secrets. A
message without a valid signature does nothing. The keys are made with the space; engines
and workers read them from the database. docs/security.md says who can read which.`,
		Example: "  quipu keys\n  quipu keys rotate",
		Args:    cli.Args(0, 0),
	}
	cmd.RunE = a.run(reads, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		on, err := rt.Keys().On(ctx)
		if err != nil {
			return err
		}
		all, err := rt.Keys().List(ctx)
		if err != nil {
			return err
		}
		return a.printKeys(on, all)
	})
	cmd.AddCommand(a.rotateCommand(), a.switchCommand(true), a.switchCommand(false))
	return cmd
}

// keyView is a key as the command prints it in JSON.
type keyView struct {
	ID    int       `json:"id"`
	Signs time.Time `json:"signs"`
	Ends  time.Time `json:"ends,omitzero"`
}

func (a *app) printKeys(on bool, all []quipu.Key) error {
	t := newTable(a.streams.Out, "KEY", "SIGNS FROM", "HOLDS UNTIL")
	for _, k := range all {
		until := "-"
		if !k.Ends.IsZero() {
			until = k.Ends.Local().Format(time.DateTime)
		}
		v := keyView{ID: k.ID, Signs: k.Signs.UTC(), Ends: k.Ends.UTC()}
		if err := a.item(t, v, k.ID, k.Signs.Local().Format(time.DateTime), until); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil || a.json() {
		return err
	}
	switch {
	case !on:
		fmt.Fprintf(a.streams.Err, "the space %s does not sign its messages: `quipu keys on` lets it\n", a.spaceName())
	case len(all) == 0:
		fmt.Fprintln(a.streams.Err, "this login may not read the keys: use that of an engine or of the owner")
	}
	return nil
}

func (a *app) rotateCommand() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Add a key, and let the old ones end",
		Long: `Add a key, and let the old ones end. The new key signs after a minute, when all processes
have read it. The old one holds for a day more. Give workers in other languages their new
key within that day (quipu topic-key).

--now is for a key that was stolen: the new key signs at once, and no other holds. All
processes read that within some seconds; until then one of them may still act on the stolen
key. Messages that are under way are refused and come again by their rows, which the metric
quipu_refused_total counts. The alert QuipuMessagesRefused may fire then, and ends within
about ten minutes of the last message that was refused. quipu recover does not believe what
an engine left in NATS under the old key, until an engine has signed it anew: within some
seconds. A worker in another language is refused until it has its new key.

It needs the login of the owner.`,
		Example: "  quipu keys rotate\n  quipu keys rotate --now",
		Args:    cli.Args(0, 0),
	}
	cmd.Flags().BoolVar(&now, "now", false, "let the other keys end at once")
	cmd.RunE = a.run(writes, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		id, err := rt.Keys().Rotate(ctx, now)
		if err != nil {
			return err
		}
		when := "signs in a minute; the others hold for a day more"
		if now {
			when = "signs from now on; the others do not hold any more, as soon as each process has read that: within some seconds"
		}
		_, err = fmt.Fprintf(a.streams.Out, "key %d %s\n", id, when)
		return err
	})
	return cmd
}

func (a *app) switchCommand(on bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "on",
		Short: "Let the space sign its messages",
		Long: `Let the space sign its messages, and refuse others. A new space does. Processes follow
within some seconds. It needs the login of the owner.`,
		Example: "  quipu keys on",
		Args:    cli.Args(0, 0),
	}
	if !on {
		cmd.Use, cmd.Short, cmd.Example = "off", "Let the space take messages without a signature", "  quipu keys off"
		cmd.Long = `Let the space take messages without a signature: whoever can publish on its subjects can
then answer requests and flood it. Use it where workers in other languages cannot have a
key. Processes follow within some seconds. It needs the login of the owner.`
	}
	cmd.RunE = a.run(writes, func(ctx context.Context, rt *quipu.Runtime, _ []string) error {
		if err := rt.Keys().Switch(ctx, on); err != nil {
			return err
		}
		text := "signs its messages"
		if !on {
			text = "takes messages without a signature"
		}
		_, err := fmt.Fprintf(a.streams.Out, "the space %s %s\n", a.spaceName(), text)
		return err
	})
	return cmd
}

func (a *app) topicKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic-key TOPIC",
		Short: "Print the key of a topic, for a worker in another language",
		Long: `Print the keys of a topic that hold, the newest first, as ID:HEX with commas between: the
value of QUIPU_TOPIC_KEY of a worker in another language (docs/wire.md). Who has it can
answer the requests of the topic, so keep it like a password. Go workers need none: they
read it from the database. A topic that no flow and no worker has is a warning.`,
		Example: "  QUIPU_TOPIC_KEY=$(quipu topic-key labels.print) node worker.js",
		Args:    cli.Args(1, 1),
	}
	cmd.RunE = a.run(reads, func(ctx context.Context, rt *quipu.Runtime, args []string) error {
		text, err := rt.Keys().Topic(ctx, args[0])
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintln(a.streams.Out, text); err != nil {
			return err
		}
		return a.strangeTopic(ctx, rt, args[0])
	})
	return cmd
}

// strangeTopic warns about a topic that no flow and no worker of the space has.
func (a *app) strangeTopic(ctx context.Context, rt *quipu.Runtime, topic string) error {
	known, err := below.Of(rt).KnownTopics(ctx)
	if err != nil || slices.Contains(known, topic) {
		return err
	}
	near := nearest(topic, known)
	if len(near) > 0 {
		near[0] = "; like it are " + near[0]
	}
	fmt.Fprintf(a.streams.Err, "no flow and no worker of the space %s has the topic %s%s\n", a.spaceName(), topic, strings.Join(near, ", "))
	return nil
}

// maxNear is how many names nearest returns.
const maxNear = 3

// nearest returns the names that are most like another one, the nearest first: those to which half
// of its letters change at most.
func nearest(name string, all []string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(x string) bool {
		return distance(name, x) > max(len(name), len(x))/2
	})
	slices.SortStableFunc(all, func(x, y string) int { return cmp.Compare(distance(name, x), distance(name, y)) })
	return all[:min(len(all), maxNear)]
}

// distance is how many letters are to be put in, taken out or replaced to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0] // of the row before
		row[0] = i + 1
		for j := range len(b) {
			changed := left
			if a[i] != b[j] {
				changed++
			}
			left = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

func (a *app) permissionsCommand() *cobra.Command {
	var role, inbox string
	var topics []string
	cmd := &cobra.Command{
		Use:   "nats-permissions",
		Short: "Print the rights on NATS that a process needs",
		Long: `Print the rights on NATS that a process needs, as a block of the server's configuration
for one user. It asks no server. --nats-prefix and --nats-domain are those of the space.

--role is engine, worker or client. A process that has several roles takes the first of
these. A worker names each topic that it serves, those of built-in handlers, too: its
inboxes depend on them.`,
		Example: "  quipu nats-permissions --space shop --role engine\n  quipu nats-permissions --space shop --role worker --topic pay.charge --topic http",
		Args:    cli.Args(0, 0),
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "`ROLE` of the process: engine, worker or client")
	f.StringArrayVar(&topics, "topic", nil, "`TOPIC` that a worker serves; may be repeated")
	f.StringVar(&inbox, "inbox", "", "`PREFIX` of the inboxes of a worker in another language; default: that of Go processes")
	cmd.RunE = cli.Run(func(cmd *cobra.Command, _ []string) error {
		if _, err := cli.ReadEnv(cmd, a.streams.Getenv); err != nil {
			return err
		}
		over, err := a.over.Options()
		if err != nil {
			return err
		}
		rights, err := nats.RightsOf(nats.Config{
			Space: a.spaceName(), Domain: over.Domain, Prefix: over.Prefix, Inbox: inbox,
		}, nats.Part(role), topics)
		if err != nil {
			return cli.Configuration(err)
		}
		_, err = fmt.Fprint(a.streams.Out, rights)
		return err
	})
	return cmd
}
