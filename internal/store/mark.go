package store

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quipu-journal/quipu/journal"
)

// Mark says how new what a database has of a space is (S13). Beats are raised about once a
// second, in the database. So the newest mark that anybody has seen, in a process or in NATS, is
// in every database that is not older. A restore that goes back by less than a second may not
// show.
type Mark struct {
	Space journal.GUID // the id of the space, which its database drew
	Epoch int64        // raised when another database is accepted (T4)
	Beat  int64
}

// After reports whether m is newer than x. Marks of different spaces cannot be compared: none is
// newer.
func (m Mark) After(x Mark) bool {
	return m.Space == x.Space && (m.Epoch > x.Epoch || m.Epoch == x.Epoch && m.Beat > x.Beat)
}

// String is the mark as text: space, epoch and beat, with a space between.
func (m Mark) String() string { return fmt.Sprintf("%s %d %d", m.Space, m.Epoch, m.Beat) }

// ParseMark reads what String writes.
func ParseMark(text string) (m Mark, err error) {
	parts := strings.Split(text, " ")
	if len(parts) == 3 {
		m.Space, err = journal.ParseGUID(parts[0])
		for i, n := range []*int64{&m.Epoch, &m.Beat} {
			if err == nil {
				*n, err = strconv.ParseInt(parts[i+1], 10, 64)
			}
		}
	}
	if err != nil || m.String() != text {
		return Mark{}, fmt.Errorf("%.100q is no mark of a space", text)
	}
	return m, nil
}
