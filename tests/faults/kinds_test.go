package faults

import (
	"context"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/internal/dev"
)

// away is how long a server is away, or a wire cut: past every lease and ack
// wait.
const away = lease + 500*time.Millisecond

// kind is a fault of 6.3. It is done while the victim stands at its point; who
// lets the victim go on before the fault is over calls control.release.
type kind struct {
	name  string // F1 …
	do    func(c *cell)
	least bool // the victim has its limits at their minimum (F16)
	small bool // it is played on a disk that can be filled (F5)
	other bool // it takes another build (F18)
	loses bool // commits are lost; a Guarded effect shows whether that is noticed (F6, F7)
}

// kinds are the faults of a cell.
var kinds = append([]*kind{
	{name: "F1 kill", do: (*cell).kill},
	{name: "F2 stop", do: (*cell).stop},
	{name: "F3 terminated backends", do: (*cell).terminate},
	{name: "F4 postgres restarted", do: (*cell).restartPostgres},
	{name: "F5 disk full", do: (*cell).fillDisk, small: true},
	{name: "F8 term", do: (*cell).term},
	{name: "F9 nats restarted", do: (*cell).restartNATS},
	{name: "F10 streams deleted", do: (*cell).deleteStreams},
	{name: "F10 streams deleted before delivery", do: (*cell).deleteUndelivered},
	{name: "F10 streams purged", do: func(c *cell) { c.eachStream(purgeStream) }},
	{name: "F10 consumers deleted", do: func(c *cell) { c.eachStream(deleteConsumersOf) }},
	{name: "F11 postgres cut", do: cutting(func(c *cell) { c.pg.Both() })},
	{name: "F11 postgres not heard", do: cutting(func(c *cell) { c.pg.Down() })},
	{name: "F11 postgres reset", do: func(c *cell) { c.pg.Reset() }},
	{name: "F11 nats cut", do: cutting(func(c *cell) { c.bus.Both() })},
	{name: "F11 nats does not hear", do: cutting(func(c *cell) { c.bus.Up() })},
	{name: "F11 nats not heard", do: cutting(func(c *cell) { c.bus.Down() })},
	{name: "F11 nats reset", do: func(c *cell) { c.bus.Reset() }},
	{name: "F12 every message twice", do: func(c *cell) { c.duplicate(1) }},
	{name: "F12 every message a hundred times", do: func(c *cell) { c.duplicate(99) }},
	{name: "F13 held for ten ack waits", do: (*cell).hold},
	{name: "F15 latency", do: cutting(func(c *cell) {
		c.pg.Slow(500*time.Millisecond, 0)
		c.bus.Slow(500*time.Millisecond, 0)
	})},
	{name: "F15 bytes", do: cutting(func(c *cell) {
		c.pg.Slices(1, 0)
		c.bus.Slices(1, 0)
	})},
	{name: "F16 least", do: (*cell).kill, least: true},
	{name: "F18 two builds", do: (*cell).otherBuild, other: true},
}, rewinds...)

// kill is kill −9; another process takes over.
func (c *cell) kill() {
	c.victim.Kill()
	c.kills++
	c.another()
}

// stop makes the victim stand still past its lease and ack wait, beside another
// that takes over, and wake up.
func (c *cell) stop() {
	c.victim.Signal(syscall.SIGSTOP)
	c.control.release()
	c.another()
	time.Sleep(away) // the fault itself: so long it stands still
	c.victim.Signal(syscall.SIGCONT)
}

// hold holds one goroutine of the victim, whose others go on, beside another
// process, for ten ack waits.
func (c *cell) hold() {
	c.another()
	time.Sleep(10 * lease) // the fault itself
}

// term has the victim drain from where it stands; another takes over.
func (c *cell) term() {
	c.victim.Signal(syscall.SIGTERM)
	c.another()
}

// terminate ends every backend of the database but its own.
func (c *cell) terminate() {
	db, err := pgx.Connect(c.t.Context(), c.dsn)
	require.NoError(c.t, err)
	defer db.Close(context.Background())
	_, err = db.Exec(c.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.NoError(c.t, err)
}

func (c *cell) restartPostgres() {
	require.NoError(c.t, c.lane.pg.Restart(c.t.Context(), dev.StopImmediate))
}

func (c *cell) restartNATS() {
	require.NoError(c.t, c.lane.nats.Restart(c.t.Context()))
}

// cutting does something to the victim's wires, lets it go on, and waits until it
// has met that.
func cutting(do func(c *cell)) func(*cell) {
	return func(c *cell) {
		do(c)
		c.control.release()
		time.Sleep(away) // the fault itself: so long the wire is bad
	}
}
