package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/journal/store"
)

// DefaultLook is the pause between two looks of Waiters for all their jobs.
const DefaultLook = time.Second

// ErrClosed says that Waiters were closed while somebody waited. It says nothing
// about the job.
var ErrClosed = errors.New("the runtime has been closed")

// Ends is what Waiters ask a store.
type Ends interface {
	// Ended is that of store.Client.
	Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error)
	// Outcomes is that of store.Client.
	Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error)
	// DeadLetters is that of store.Client.
	DeadLetters(ctx context.Context, f store.DeadFilter) ([]store.DeadView, error)
}

// ParkedError says that a job waits for a person: it has open dead letters.
type ParkedError struct{ DeadLetters []store.DeadView }

// Error counts them.
func (e *ParkedError) Error() string {
	return fmt.Sprintf("the job waits for a person: %d dead letters", len(e.DeadLetters))
}

// WaitersConfig configures Waiters.
type WaitersConfig struct {
	Store Ends // required
	// Listen is that of the bus; nil without one.
	Listen func(job [16]byte, told func()) (stop func(), err error)
	// Look is the pause between two looks for ends that nobody told; DefaultLook.
	Look   time.Duration
	Logger *slog.Logger
}

// Waiters are those in this process who wait for the end of jobs (W5). Each
// registers, and its job is looked at once; then it sleeps until it is told. Who
// waits costs no query: one query for all of them, in every Config.Look, finds what
// nobody told. Questions that come while another is under way are asked together.
type Waiters struct {
	cfg WaitersConfig
	ctx context.Context //nolint:containedctx // the lifetime, ended by Close
	end context.CancelFunc

	mu      sync.Mutex
	jobs    map[journal.JobID]*awaited
	asked   []journal.JobID // to be read; those that nobody waits for any more may be among them
	running bool            // the loop, while somebody waits
	wake    chan struct{}   // something is asked, or nobody waits any more
	loop    sync.WaitGroup  // run and answer

	questions []question // about parked jobs
	answering bool       // answer, while there are some
}

// awaited is a job that somebody waits for.
type awaited struct {
	by    map[chan ending]bool // true: for no longer than until it is parked
	asked bool                 // it is in Waiters.asked
}

// ending is how it ended for one who waited.
type ending struct {
	out store.Outcome
	err error
}

// NewWaiters has nobody wait yet. Close it.
func NewWaiters(cfg WaitersConfig) *Waiters {
	setDuration(&cfg.Look, DefaultLook)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Waiters{cfg: cfg, jobs: map[journal.JobID]*awaited{}, wake: make(chan struct{}, 1)}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// Wait waits until nothing is to be waited for of the job (store.Outcome.Over), or, if
// that is asked for, until it waits for a person itself. The error is store.ErrNotFound,
// ErrClosed, *ParkedError, the cause of ctx's end, or of the store; a store that is away is
// waited for.
func (w *Waiters) Wait(ctx context.Context, job journal.JobID, untilParked bool) (store.Outcome, error) {
	if w.cfg.Listen != nil {
		stop, err := w.cfg.Listen(job, func() { w.Told([]journal.JobID{job}) })
		if err != nil {
			w.cfg.Logger.Debug("nobody of another process tells of a job; it is looked for", "job", job.String(), "error", err)
		} else {
			defer stop()
		}
	}
	end := make(chan ending, 1)
	if err := w.enter(job, end, untilParked); err != nil {
		return store.Outcome{}, err
	}
	select {
	case e := <-end:
		return e.out, e.err
	case <-ctx.Done():
		w.leave(job, end)
		return store.Outcome{}, context.Cause(ctx)
	}
}

// Told makes those who wait for the jobs look: they may have ended. It does not
// block.
func (w *Waiters) Told(jobs []journal.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range jobs {
		if j := w.jobs[id]; j != nil {
			w.ask(id, j)
		}
	}
}

// Close ends all waiting with ErrClosed.
func (w *Waiters) Close() {
	w.end()
	w.mu.Lock()
	for id := range w.jobs {
		w.tell(id, ending{err: ErrClosed})
	}
	w.stir()
	w.mu.Unlock()
	w.loop.Wait()
}

// enter registers one who waits, before his job is looked at, and starts the loop
// for the first one.
func (w *Waiters) enter(job journal.JobID, end chan ending, untilParked bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return ErrClosed
	}
	j := w.jobs[job]
	if j == nil {
		j = &awaited{by: map[chan ending]bool{}}
		w.jobs[job] = j
	}
	j.by[end] = untilParked
	w.ask(job, j)
	if !w.running {
		w.running = true
		w.loop.Go(w.run)
	}
	return nil
}

// leave takes back one who waits no more.
func (w *Waiters) leave(job journal.JobID, end chan ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[job]
	if j == nil {
		return
	}
	if delete(j.by, end); len(j.by) == 0 {
		delete(w.jobs, job)
	}
	if len(w.jobs) == 0 {
		w.stir()
	}
}

// ask has the job read next. The caller holds mu, as for the following.
func (w *Waiters) ask(id journal.JobID, j *awaited) {
	if !j.asked {
		j.asked = true
		w.asked = append(w.asked, id)
		w.stir()
	}
}

func (w *Waiters) stir() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell ends the waiting for a job. Each gets an output of its own.
func (w *Waiters) tell(id journal.JobID, e ending) {
	j := w.jobs[id]
	if j == nil {
		return
	}
	delete(w.jobs, id)
	for end := range j.by {
		own := e
		own.out.Output = slices.Clone(e.out.Output)
		end <- own
	}
}

// run asks the store until nobody waits any more.
func (w *Waiters) run() {
	pause := time.NewTimer(w.cfg.Look)
	defer pause.Stop()
	for !w.idle() {
		select {
		case <-w.wake:
			w.read(w.take())
		case <-pause.C:
			w.look()
			pause.Reset(w.cfg.Look)
		}
	}
}

// idle says that the loop ends: nobody waits.
func (w *Waiters) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) > 0 {
		return false
	}
	w.running, w.asked = false, nil
	return true
}

// take gives what is to be read, as much as one question may be about.
func (w *Waiters) take() []journal.JobID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []journal.JobID
	for len(w.asked) > 0 && len(ids) < store.MaxOutcomes {
		id := w.asked[0]
		w.asked = w.asked[1:]
		if j := w.jobs[id]; j != nil && j.asked {
			j.asked = false
			ids = append(ids, id)
		}
	}
	if len(w.asked) > 0 {
		w.stir()
	}
	return ids
}

// read asks how jobs stand, with one query, and ends the waiting for those that
// have ended. What was told too early is waited for still.
func (w *Waiters) read(ids []journal.JobID) {
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, transactTime)
	defer cancel()
	out, err := w.cfg.Store.Outcomes(ctx, ids)
	switch {
	case err == nil:
	case away(ctx, err):
		w.cfg.Logger.Debug("the database is away; it is looked again for the end of jobs", "jobs", len(ids), "error", err)
		return
	case len(ids) > 1: // what is wrong with one is not the others' trouble
		for i := range ids {
			w.read(ids[i : i+1])
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		o, known := out[id]
		switch {
		case err != nil:
			w.tell(id, ending{err: err})
		case !known:
			w.tell(id, ending{err: fmt.Errorf("job %s: %w", id, store.ErrNotFound)})
		case o.Over():
			w.tell(id, ending{out: o})
		}
	}
}

// away says that a question may be asked again.
func away(ctx context.Context, err error) bool {
	return errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil
}

// look asks for all jobs at once which have ended: what was told was lost, or
// nobody is there who tells. Those are read next.
func (w *Waiters) look() {
	w.mu.Lock()
	ids := make([]journal.JobID, 0, len(w.jobs))
	var parking []journal.JobID
	for id, j := range w.jobs {
		ids = append(ids, id)
		for _, untilParked := range j.by {
			if untilParked {
				parking = append(parking, id)
				break
			}
		}
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.ctx, transactTime)
	defer cancel()
	w.park(ctx, parking)
	ended, err := w.cfg.Store.Ended(ctx, ids)
	if err != nil && away(ctx, err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		done, known := ended[id]
		if j := w.jobs[id]; j != nil && (done || !known || err != nil) { // an error is told to those who wait
			w.ask(id, j)
		}
	}
}

// question is one who asks whether a job is parked.
type question struct {
	job    journal.JobID
	answer chan answer
}

// answer is what became of a question.
type answer struct {
	letters []store.DeadView
	err     error
}

// Parked are the open dead letters of a job, newest first, at most a page of them.
// Questions that come while another is under way are asked together, so that many waits
// with one deadline cost a few queries. The error is ErrClosed, the cause of ctx's end, or
// of the store.
func (w *Waiters) Parked(ctx context.Context, job journal.JobID) ([]store.DeadView, error) {
	q := question{job, make(chan answer, 1)}
	w.mu.Lock()
	if w.ctx.Err() != nil {
		w.mu.Unlock()
		return nil, ErrClosed
	}
	w.questions = append(w.questions, q)
	if !w.answering {
		w.answering = true
		w.loop.Go(w.answer)
	}
	w.mu.Unlock()
	select {
	case a := <-q.answer:
		return a.letters, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answer answers questions until there are none.
func (w *Waiters) answer() {
	for {
		w.mu.Lock()
		n := min(len(w.questions), store.MaxPage)
		asked := w.questions[:n:n]
		w.questions = w.questions[n:]
		w.answering = n > 0
		w.mu.Unlock()
		if n == 0 {
			return
		}
		jobs := make([]journal.JobID, 0, n)
		for _, q := range asked {
			jobs = append(jobs, q.job)
		}
		slices.SortFunc(jobs, func(x, y journal.JobID) int { return bytes.Compare(x[:], y[:]) })
		ctx, cancel := context.WithTimeout(w.ctx, transactTime)
		by, err := w.letters(ctx, slices.Compact(jobs))
		cancel()
		for _, q := range asked {
			q.answer <- answer{slices.Clone(by[q.job]), err}
		}
	}
}

// letters are the open dead letters of jobs, at most store.MaxPage of them. Of a job that
// has some at least one is there. It takes one query, but for jobs with very many.
func (w *Waiters) letters(ctx context.Context, jobs []journal.JobID) (map[journal.JobID][]store.DeadView, error) {
	by := map[journal.JobID][]store.DeadView{}
	for {
		page, err := w.cfg.Store.DeadLetters(ctx, store.DeadFilter{Jobs: jobs, Limit: store.MaxPage})
		if err != nil {
			return nil, err
		}
		for i := range page {
			by[page[i].Letter.Job] = append(by[page[i].Letter.Job], page[i])
		}
		without := slices.DeleteFunc(slices.Clone(jobs), func(id journal.JobID) bool { return len(by[id]) > 0 })
		if len(page) < store.MaxPage || len(without) == 0 || len(without) == len(jobs) {
			return by, nil
		}
		jobs = without
	}
}

// park ends the waiting of those who wait no longer than until a job is parked: a query
// for each store.MaxPage of such jobs.
func (w *Waiters) park(ctx context.Context, jobs []journal.JobID) {
	for page := range slices.Chunk(jobs, store.MaxPage) {
		by, err := w.letters(ctx, page)
		if err != nil {
			return // it is looked again
		}
		w.mu.Lock()
		for id, letters := range by {
			w.tellParked(id, letters)
		}
		w.mu.Unlock()
	}
}

// tellParked ends the waiting of some of those who wait for a job.
func (w *Waiters) tellParked(id journal.JobID, letters []store.DeadView) {
	j := w.jobs[id]
	if j == nil {
		return
	}
	for end, untilParked := range j.by {
		if untilParked {
			delete(j.by, end)
			end <- ending{err: &ParkedError{letters}}
		}
	}
	if len(j.by) == 0 {
		delete(w.jobs, id)
	}
	if len(w.jobs) == 0 {
		w.stir()
	}
}
