package cut_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quipu-journal/quipu/internal/testkit/cut"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// silence is how long nothing must come; patience how long something may take.
const (
	silence  = 100 * time.Millisecond
	patience = 10 * time.Second
)

// echo is a server that sends back what it gets, and keeps it.
type echo struct {
	addr  string
	group sync.WaitGroup

	mu     sync.Mutex
	cond   *sync.Cond
	got    bytes.Buffer
	reads  int     // how many times something came
	failed []error // how connections ended, nil for a proper end
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := &echo{addr: l.Addr().String()}
	e.cond = sync.NewCond(&e.mu)
	e.group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.group.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(func() { // the proxy has ended by now, and with it its connections
		require.NoError(t, l.Close())
		e.group.Wait()
	})
	return e
}

func (e *echo) serve(c net.Conn) {
	defer c.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := c.Read(b)
		e.mu.Lock()
		if n > 0 {
			e.got.Write(b[:n])
			e.reads++
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			e.failed = append(e.failed, err)
		}
		e.cond.Broadcast()
		e.mu.Unlock()
		if n > 0 {
			_, _ = c.Write(b[:n])
		}
		if n == 0 {
			return
		}
	}
}

// until waits for the server to have seen something.
func (e *echo) until(t *testing.T, what string, seen func() bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return seen()
	}, patience, time.Millisecond, what)
}

func (e *echo) heard(t *testing.T, text string) {
	t.Helper()
	e.until(t, "the server hears "+text, func() bool { return e.got.String() == text })
}

// client is a connection through a proxy.
type client struct {
	t *testing.T
	p *cut.Proxy
	*net.TCPConn
}

func dial(t *testing.T, p *cut.Proxy) *client {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.Addr(), patience)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return &client{t, p, c.(*net.TCPConn)}
}

func (c *client) say(text string) {
	c.t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(c.t, err)
}

// begin is a connection through a proxy to a server.
func begin(t *testing.T) (*echo, *cut.Proxy, *client) {
	t.Helper()
	e := newEcho(t)
	p := cut.New(t, e.addr)
	return e, p, dial(t, p)
}

// echoes says something and hears it again.
func (c *client) echoes(text string) {
	c.t.Helper()
	c.say(text)
	c.hears(text)
}

func (c *client) hears(text string) {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
	b := make([]byte, len(text))
	_, err := io.ReadFull(c, b)
	require.NoError(c.t, err)
	require.Equal(c.t, text, string(b))
}

// quiet says that the connection, the only one that loses something, is up and
// nothing comes. What was sent is lost by then: on a machine that is busy it may
// still be on its way to the proxy after the silence, and would arrive if that
// was healed.
func (c *client) quiet() {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.p.Lost() == 1 }, patience, time.Millisecond, "the proxy has lost something")
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(silence)))
	n, err := c.Read(make([]byte, 1))
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded)
	require.Zero(c.t, n)
}

func (c *client) isReset() {
	c.t.Helper()
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(c.t, err, syscall.ECONNRESET)
}

func TestPassesAndEndsAsTheServerWould(t *testing.T) {
	t.Parallel()
	e, _, c := begin(t)
	c.echoes("one")
	require.NoError(t, c.CloseWrite())
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	e.until(t, "the end", func() bool { return len(e.failed) == 1 && e.failed[0] == nil })
}

// F11: the server acts and cannot say so; once something was lost the connection
// cannot go on.
func TestF11DownOnALiveConnection(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	p := cut.New(t, e.addr)
	c, idle := dial(t, p), dial(t, p)
	c.echoes("a")
	p.Down()
	c.say("b")
	e.heard(t, "ab")
	c.quiet()
	p.Heal()
	c.isReset()
	idle.echoes("c")
}

// F11: the answer to one request is what is lost.
func TestF11DownAtARequest(t *testing.T) {
	t.Parallel()
	e, p, c := begin(t)
	p.DownAt("commit")
	c.echoes("begin")
	c.say("commit now")
	e.heard(t, "begincommit now")
	c.quiet()
	p.Heal()
	c.isReset()
	dial(t, p).echoes("commit")
}

// F11: the client speaks and is not heard.
func TestF11UpOnALiveConnection(t *testing.T) {
	t.Parallel()
	e, p, c := begin(t)
	p.Up()
	c.say("a")
	c.quiet()
	e.heard(t, "")
	p.Heal()
	c.isReset()
	e.until(t, "the server's end is reset", func() bool {
		return len(e.failed) == 1 && errors.Is(e.failed[0], syscall.ECONNRESET)
	})
}

// F11: nobody hears anything, not even that the other has gone; new connections
// are in the same network.
func TestF11Both(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	p := cut.New(t, e.addr)
	idle, c := dial(t, p), dial(t, p)
	c.echoes("a")
	p.Both()
	late := dial(t, p)
	late.say("b")
	late.quiet()
	require.NoError(t, c.Close())
	e.until(t, "nothing", func() bool { return e.got.String() == "a" && len(e.failed) == 0 })
	p.Heal()
	late.isReset()
	idle.echoes("c")
	e.heard(t, "ac")
}

func TestReset(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t)
	c.echoes("a")
	p.Reset()
	c.isReset()
	dial(t, p).echoes("b")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t)
	c.echoes("a")
	p.Refuse()
	_, err := net.DialTimeout("tcp", p.Addr(), patience)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	c.echoes("b")
	p.Heal()
	dial(t, p).echoes("c")
}

// A server that is away is no proxy that is away: the connection is taken and
// reset.
func TestServerAway(t *testing.T) {
	t.Parallel()
	p := cut.New(t, "127.0.0.1:1") // where nobody listens
	c, err := net.DialTimeout("tcp", p.Addr(), patience)
	if err == nil {
		(&client{t, p, c.(*net.TCPConn)}).isReset()
		require.NoError(t, c.Close())
		return
	}
	require.ErrorIs(t, err, syscall.ECONNRESET) // so early that it never was
}

// F15: each direction takes as long as was said, live connections too.
func TestF15Slow(t *testing.T) {
	t.Parallel()
	e, p, c := begin(t)
	c.echoes("a")
	const latency = 150 * time.Millisecond
	for range 2 { // again is the same as once
		p.Slow(latency, 0)
	}
	began := time.Now()
	c.echoes("b")
	require.GreaterOrEqual(t, time.Since(began), 2*latency)
	c.say("c") // under way when it heals: not lost, and in order
	p.Heal()
	c.say("d")
	c.hears("cd")
	e.heard(t, "abcd")
}

// F15: pieces of one byte.
func TestF15Slices(t *testing.T) {
	t.Parallel()
	e, p, c := begin(t)
	const delay = 5 * time.Millisecond
	p.Slices(1, delay)
	text := "a text of some more bytes"
	began := time.Now()
	c.say(text)
	c.hears(text)
	require.GreaterOrEqual(t, time.Since(began), time.Duration(len(text)-1)*delay)
	e.until(t, "the server read it piece by piece", func() bool { return e.reads > 1 })
	p.Heal()
	c.echoes("b")
}

// Both ends go while much is under way: nothing hangs and nothing is left
// (goleak).
func TestEndsUnderLoad(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	p := cut.New(t, e.addr)
	p.Slow(5*time.Millisecond, 2*time.Millisecond)
	var group sync.WaitGroup
	for range 3 {
		c := dial(t, p)
		group.Go(func() {
			b := make([]byte, 1<<15)
			for {
				if _, err := c.Write(b); err != nil {
					return
				}
			}
		})
		group.Go(func() { _, _ = io.CopyN(io.Discard, c, 1<<18); _ = c.Close() })
	}
	group.Wait()
	p.Heal()
	c := dial(t, p)
	c.echoes("z")
}

// A connection is reset before what its server says, once, and those who count its trips see each
// answer that a client waited for.
func TestResetAt(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t)
	c.echoes("one")
	c.echoes("two")
	require.EqualValues(t, 2, p.Trips())
	then := make(chan struct{})
	p.ResetAt("three", func() { close(then) })
	c.say("three")
	<-then
	c.isReset()
	dial(t, p).echoes("three")
}
