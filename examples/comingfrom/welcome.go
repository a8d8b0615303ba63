package comingfrom

import (
	"context"

	"github.com/quipu-journal/quipu"
	"github.com/quipu-journal/quipu/effects"
	"github.com/quipu-journal/quipu/workers"
)

// Welcome is the input of the flow welcome.
type Welcome struct {
	User string `json:"user"`
}

// Mailer sends mails. A key that comes twice is sent once.
type Mailer interface {
	// Send sends a mail.
	Send(ctx context.Context, key, user string) error
}

// Post is the post office.
type Post struct{ Mailer Mailer }

// Register adds the handler to those of a process.
func (p Post) Register(reg *workers.Registry) { workers.Handle(reg, "mail.welcome", p.Welcome) }

// Welcome sends the mail.
func (p Post) Welcome(ctx context.Context, in Welcome) (struct{}, error) {
	return effects.Do(ctx, "send", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.Mailer.Send(ctx, effects.Key(ctx), in.User)
	}, effects.Idempotent)
}

// SignUp writes the user and starts the job, both or neither. The key makes the job unique.
func SignUp(ctx context.Context, rt *quipu.Runtime, tx quipu.Tx, user string) error {
	if _, err := tx.Exec(ctx, "insert into users (name) values ($1)", user); err != nil {
		return err
	}
	_, err := rt.StartTx(ctx, tx, "welcome", "welcome-"+user, Welcome{User: user})
	return err
}
