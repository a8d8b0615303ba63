package journaltest

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// Message returns the message of a row, for other drivers of stores.
func Message(r *collation.Row) *collation.Message { return message(r) }

// Response returns a worker's response to the current turn of a request.
func Response(r *collation.Row, with *journal.Response) *collation.Message { return response(r, with) }

// Carried returns the response in the body of a row, nil for kinds without one.
func Carried(r *collation.Row) (*journal.Response, error) { return carried(r) }
