package memstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Config sets up a Store. The zero value works.
type Config struct {
	// Space is the name of the space; default "memory".
	Space string
	// Now is the database's clock, µs since 1970; default the process's clock.
	// It is called with the store locked and must not call the store.
	Now func() int64
	// Fault is called before each writing call does anything, with the name of the call
	// ("commit", "lease", …), and after the call did its work, with ".done" appended. After an
	// error from before, nothing was written, and the call returns it with store.ErrUnavailable.
	// An error from after means that the answer was lost: store.ErrUnknown. Fault may block; the
	// store is not locked meanwhile, but a commit's jobs are.
	Fault func(op string) error
}

// Store implements store.Store. It is safe for concurrent use.
type Store struct {
	cfg Config

	mu   sync.Mutex
	jobs map[journal.JobID]*job // including tombstones, also of keys used again
	// of jobs (J3), and of children that have not begun: the first of each has the lock, the others
	// wait
	locks map[journal.JobID][]*txn
	moved *sync.Cond               // locks were released
	keys  map[string]journal.JobID // the last generation of each key
	// how long closed jobs are kept whose flow does not say it
	expire time.Duration
	// by addressee: a job, which may not have begun, or a mailbox
	rows     map[journal.JobID]map[journal.GUID]*collation.Row
	signals  map[collation.RowKey]signal // those from outside
	flows    map[string]*flowVersions
	letters  []*store.DeadView // by their ids
	letterID int64             // the last one given
	sessions uint64
	members  map[int64]*member           // the sessions of processes
	killed   map[string]collation.Micros // when a process died that ran the topic early
	memberID int64                       // the last one given
	values   map[string]string           // of Tx effects
}

var _ store.Store = (*Store)(nil)

// job is one job with all its rows. Values behind pointers are replaced, never changed, so an
// undo only restores pointers.
type job struct {
	collation.Job
	closed    collation.Micros
	tasksSeq  int64
	closedSeq int64
	expires   collation.Micros // Never: it is kept for good; of a tombstone: when it ends
	replaced  bool             // of a tombstone: its key was used again
	next      journal.JobID    // the job that resumes it and now has the key
	waits     map[journal.GUID]*collation.Wait
	instances map[collation.InstanceKey]*collation.Instance
	receipts  map[journal.GUID]*collation.Receipt      // without responses
	resolved  map[journal.GUID]*collation.ResolvedWait // by the GUID of the message that resolved each
	chains    map[journal.GUID][]*record
	effects   map[effectID]*collation.Effect
	topics    map[journal.GUID]string // of the requests with effects
	payloads  map[journal.Digest][]byte
}

// record is one entry. Its bytes never change.
type record struct {
	journal.Record
	read *journal.Entry // set by the first call of entryOf
}

// New returns an empty store.
func New(cfg Config) *Store {
	if cfg.Space == "" {
		cfg.Space = "memory"
	}
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixMicro() }
	}
	s := &Store{
		cfg: cfg, jobs: map[journal.JobID]*job{}, locks: map[journal.JobID][]*txn{}, keys: map[string]journal.JobID{},
		flows:   map[string]*flowVersions{},
		rows:    map[journal.JobID]map[journal.GUID]*collation.Row{},
		signals: map[collation.RowKey]signal{},
		members: map[int64]*member{}, killed: map[string]collation.Micros{},
		values: map[string]string{},
	}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// Close does nothing: a store in memory has no connections.
func (s *Store) Close() {}

func (s *Store) now() collation.Micros { return collation.Micros(s.cfg.Now()) }

// write runs one writing transaction that needs no lock of a job. change runs under the mutex.
func (s *Store) write(op string, change func(u *undo) error) error {
	if err := s.before(op); err != nil {
		return err
	}
	s.mu.Lock()
	err := atomic(change)
	if s.mu.Unlock(); err != nil {
		return err
	}
	return s.after(op)
}

func (s *Store) before(op string) error { return s.fault(op, store.ErrUnavailable) }

func (s *Store) after(op string) error { return s.fault(op+".done", store.ErrUnknown) }

func (s *Store) fault(op string, kind error) error {
	if s.cfg.Fault == nil {
		return nil
	}
	if err := s.cfg.Fault(op); err != nil {
		return fmt.Errorf("memory: %s: %w: %w", op, kind, err)
	}
	return nil
}

// undo has the functions that take a transaction's changes back.
type undo []func()

// atomic undoes what change has written if it fails.
func atomic(change func(*undo) error) error {
	var u undo
	err := change(&u)
	if err != nil {
		for _, f := range slices.Backward(u) {
			f()
		}
	}
	return err
}

// put sets m[k], with its undo.
func put[K comparable, V any](u *undo, m map[K]V, k K, v V) {
	forget(u, m, k)
	m[k] = v
}

// drop deletes m[k], with its undo.
func drop[K comparable, V any](u *undo, m map[K]V, k K) {
	forget(u, m, k)
	delete(m, k)
}

func forget[K comparable, V any](u *undo, m map[K]V, k K) {
	old, had := m[k]
	*u = append(*u, func() {
		if had {
			m[k] = old
		} else {
			delete(m, k)
		}
	})
}

// set assigns *p, with its undo.
func set[V any](u *undo, p *V, v V) {
	old := *p
	*u = append(*u, func() { *p = old })
	*p = v
}

func compareIDs[T ~[16]byte](a, b T) int {
	x, y := [16]byte(a), [16]byte(b)
	return bytes.Compare(x[:], y[:])
}

func sortedIDs[T ~[16]byte, V any](m map[T]V) []T {
	return slices.SortedFunc(maps.Keys(m), compareIDs[T])
}

// session returns the number of the store's n-th session: a UUIDv8 like every GUID.
func session(n uint64) journal.GUID {
	g := journal.GUID{0: 0x5e, 6: 0x80, 8: 0x80}
	binary.BigEndian.PutUint32(g[12:], uint32(n))
	return g
}

// living returns a job that is not a tombstone, or nil.
func (s *Store) living(id journal.JobID) *job {
	if j := s.jobs[id]; j != nil && j.State != journal.JobExpired {
		return j
	}
	return nil
}

// known returns the job or tombstone that has its key; nil for a tombstone whose key was used
// again.
func (s *Store) known(id journal.JobID) *job {
	if j := s.jobs[id]; j != nil && !j.replaced {
		return j
	}
	return nil
}
