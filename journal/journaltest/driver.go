package journaltest

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Message is the message of a row, for other drivers of stores.
func Message(r *collation.Row) *collation.Message { return message(r) }

// Response is a worker's response to the turn of a request that its row has.
func Response(r *collation.Row, with *journal.Response) *collation.Message { return response(r, with) }

// Carried is the response in the body of a row, nil for kinds that have none.
func Carried(r *collation.Row) (*journal.Response, error) { return carried(r) }
