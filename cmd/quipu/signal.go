package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/api"
	"github.com/quipu-journal/quipu/cmd/internal/cli"
)

// signalFlags are the options of quipu signal.
type signalFlags struct {
	code int
	id   string
	all  bool
	keep time.Duration
	who  string
}

func (a *app) signalCommand() *cobra.Command {
	var f signalFlags
	cmd := &cobra.Command{
		Use:   "signal TOPIC KEY [PAYLOAD | @FILE | -]",
		Short: "Send a signal to a hook or function",
		Long: `Send a signal to the hook, or to the Await of a function, that has waited longest for the
topic and the key. If nobody waits, the signal is kept, and the next wait for it takes it
within half a second. With --all it goes to everybody who waits now, and is not kept.

The payload is JSON, null by default: write it as the argument, @FILE, or - for standard
input. A signal that is repeated with the same --id does nothing.`,
		Example: `  quipu signal order.reviewed order-42 '{"ok": true}'
  quipu signal order.reviewed order-42 --code 403 --id review-7
  quipu signal feed.item news --code 202 - < item.json`,
		Args: cli.Args(2, 3),
	}
	cmd.Flags().IntVar(&f.code, "code", 200, "`CODE` of the signal: 200, 202 (a hook that repeats stays open), or 400 to 599 (the wait ends with that error)")
	cmd.Flags().StringVar(&f.id, "id", "", "idempotency `KEY` of this signal; default: each call is a signal of its own")
	cmd.Flags().BoolVar(&f.all, "all", false, "to all that wait now, and to none that waits later")
	cmd.Flags().DurationVar(&f.keep, "keep", quipu.DefaultKeep, "`TIME` that it is kept while nobody waits, up to 720h")
	a.named(cmd, &f.who)
	cmd.RunE = cli.Run(func(cmd *cobra.Command, args []string) error {
		if f.all && cmd.Flags().Changed("keep") {
			return cli.Exitf(cli.CodeUsage, "--all and --keep: a signal to all that wait now is not kept")
		}
		f.who = cmp.Or(f.who, a.who())
		payload := []byte("null")
		if len(args) == 3 {
			var err error
			if payload, err = a.payload("PAYLOAD", args[2]); err != nil {
				return err
			}
		}
		if err := json.Unmarshal(payload, new(json.RawMessage)); err != nil {
			return cli.Exitf(codeRefused, "the payload is no JSON (%w), a text needs quotes: %.80s", err, payload)
		}
		return a.ask(cmd, starts, func(ctx context.Context, from source) error {
			done, err := from.Signal(ctx, args[0], args[1], payload, &f)
			if err != nil {
				return err
			}
			return a.signalled(&signalled{args[0], args[1], done}, f.keep)
		})
	})
	return cmd
}

// signalled is what became of a signal, as it is printed in JSON.
type signalled struct {
	Topic string `json:"topic"`
	Key   string `json:"key"`
	api.Signalled
}

// signalled prints what became of a signal.
func (a *app) signalled(out *signalled, keep time.Duration) (err error) {
	if a.json() {
		err = a.object(out)
	} else {
		_, err = fmt.Fprintf(a.streams.Out, "signal %s %s %s\n", plain(out.Topic), plain(out.Key), out.text(keep))
	}
	if err == nil && out.State == string(quipu.SignalMissed) {
		return cli.Exit(codeNotFound, cli.ErrReported)
	}
	return err
}

// text describes what became of the signal.
func (s *signalled) text(keep time.Duration) string {
	switch {
	case s.Duplicate:
		return "was sent before with this --id, and was " + s.State
	case s.State == string(quipu.SignalKept):
		return fmt.Sprintf("is kept for %s: nobody waits for it yet", keep)
	case s.State == string(quipu.SignalMissed):
		return "reached nobody: nobody waits for it"
	case s.Reached == 1:
		return "was taken by 1 wait"
	}
	return fmt.Sprintf("was taken by %d waits", s.Reached)
}
