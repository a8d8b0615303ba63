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

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// DefaultLook is the pause between two looks of Waiters for all their jobs.
const DefaultLook = time.Second

// ErrClosed says that the Waiters were closed during a wait. It says nothing about the job.
var ErrClosed = errors.New("the runtime has been closed")

// Ends is the part of a store that Waiters need.
type Ends interface {
	// Ended is as in store.Client.
	Ended(ctx context.Context, ids []journal.JobID) (map[journal.JobID]bool, error)
	// Outcomes is as in store.Client.
	Outcomes(ctx context.Context, ids []journal.JobID) (map[journal.JobID]store.Outcome, error)
	// DeadLetters is as in store.Client.
	DeadLetters(ctx context.Context, f store.DeadFilter) ([]store.DeadView, error)
}

// ParkedError says that a job waits for a person: it has open dead letters.
type ParkedError struct{ DeadLetters []store.DeadView }

// Error gives their number.
func (e *ParkedError) Error() string {
	return fmt.Sprintf("the job waits for a person: %d dead letters", len(e.DeadLetters))
}

// WaitersConfig configures Waiters.
type WaitersConfig struct {
	Store Ends // required
	// Listen is the bus's; nil without one.
	Listen func(job [16]byte, told func()) (stop func(), err error)
	// Runs, if set, says that this process runs the job, and will tell of its end by Over. Nobody
	// looks at the job before WaitersConfig.Look has passed.
	Runs func(job journal.JobID) bool
	// Look is the pause between two looks for ends that nobody told; DefaultLook.
	Look   time.Duration
	Logger *slog.Logger
}

// Waiters are all waits of this process for the end of jobs (W5). A wait registers, has its job
// looked at once, unless the job runs in this process or has just ended here, and then sleeps until
// it is told. A sleeping wait costs no query: one query for all, once per WaitersConfig.Look, finds
// the ends that nobody told. Questions that come during another are asked together.
type Waiters struct {
	cfg WaitersConfig
	ctx context.Context //nolint:containedctx // the lifetime, ended by Close
	end context.CancelFunc

	mu      sync.Mutex
	jobs    map[journal.JobID]*awaited
	recent  recentEnds
	asked   []journal.JobID // to be read; some may have no waits any more
	running bool            // run is active, while there are waits
	wake    chan struct{}   // something is asked, or the last wait is gone
	loop    sync.WaitGroup  // run and answer

	questions []question // about parked jobs
	answering bool       // answer is active, while there are questions
}

// awaited is a job that somebody waits for.
type awaited struct {
	by    map[chan ending]bool // true: it ends, too, when the job is parked
	asked bool                 // it is in Waiters.asked
}

// ending is the result of one wait.
type ending struct {
	out store.Outcome
	err error
}

// NewWaiters returns Waiters without waits; end them with Close.
func NewWaiters(cfg WaitersConfig) *Waiters {
	setDuration(&cfg.Look, DefaultLook)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Waiters{cfg: cfg, jobs: map[journal.JobID]*awaited{}, wake: make(chan struct{}, 1)}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// Wait waits until the job is over (store.Outcome.Over) or, with untilParked, until the job
// itself waits for a person. Errors: store.ErrNotFound, ErrClosed, *ParkedError, the cause of
// ctx's end, or the store's. While the database cannot be reached Wait goes on waiting.
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

// Len returns the number of waits.
func (w *Waiters) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, j := range w.jobs {
		n += len(j.by)
	}
	return n
}

// Told makes the waits for these jobs look, because the jobs may have ended. It does not block.
func (w *Waiters) Told(jobs []journal.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range jobs {
		if j := w.jobs[id]; j != nil {
			w.ask(id, j)
		}
	}
}

// Over ends the waits for jobs that this process has ended, also those that come soon. It does not
// block.
func (w *Waiters) Over(jobs []Ended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range jobs {
		id := jobs[i].Job
		switch j := w.jobs[id]; {
		case j == nil:
			w.recent.add(id, jobs[i].How)
		case jobs[i].How.Over():
			w.tell(id, ending{out: jobs[i].How})
		default:
			w.ask(id, j)
		}
	}
	if len(w.jobs) == 0 {
		w.stir()
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

// enter registers a wait, asks for its job, and starts run for the first wait. A job that has just
// ended here is over at once.
func (w *Waiters) enter(job journal.JobID, end chan ending, untilParked bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return ErrClosed
	}
	if o, known := w.recent.of(job); known {
		o.Output = slices.Clone(o.Output)
		end <- ending{out: o}
		return nil
	}
	j := w.jobs[job]
	if j == nil {
		j = &awaited{by: map[chan ending]bool{}}
		w.jobs[job] = j
	}
	j.by[end] = untilParked
	if w.cfg.Runs == nil || !w.cfg.Runs(job) {
		w.ask(job, j)
	}
	if !w.running {
		w.running = true
		w.loop.Go(w.run)
	}
	return nil
}

// leave removes a wait.
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

// ask has the job read next. The caller holds mu, as for stir and tell.
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

// tell ends the waits for a job. Each gets its own copy of the output.
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

// run asks the store until there are no waits.
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

// idle reports whether run ends, because there are no waits.
func (w *Waiters) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) > 0 {
		return false
	}
	w.running, w.asked = false, nil
	return true
}

// take returns the jobs to read next, as many as one query may name.
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

// read asks for the state of jobs, with one query, and ends the waits for those that have
// ended. A wait that was told too early goes on.
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
	case len(ids) > 1: // an error about one job shall not end the other waits
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

// away reports whether the question may be asked again.
func away(ctx context.Context, err error) bool {
	return errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil
}

// look asks which of all jobs have ended, in case nobody told, or what was told is lost. Those
// are read next.
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
		if j := w.jobs[id]; j != nil && (done || !known || err != nil) { // an error reaches the waits by read
			w.ask(id, j)
		}
	}
}

// question asks whether a job is parked.
type question struct {
	job    journal.JobID
	answer chan answer
}

// answer is the result of a question.
type answer struct {
	letters []store.DeadView
	err     error
}

// Parked returns the open dead letters of a job, newest first, at most store.MaxPage. Questions
// that come during another are asked together, so that many waits with one deadline cost a few
// queries. Errors: ErrClosed, the cause of ctx's end, or the store's.
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

// letters returns open dead letters of jobs, at most store.MaxPage of each. A job that has any
// has at least one in the result. It takes one query, unless there are very many.
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

// park ends the waits that end when their job is parked, with a query for each store.MaxPage
// jobs.
func (w *Waiters) park(ctx context.Context, jobs []journal.JobID) {
	for page := range slices.Chunk(jobs, store.MaxPage) {
		by, err := w.letters(ctx, page)
		if err != nil {
			return // the next look asks again
		}
		w.mu.Lock()
		for id, letters := range by {
			w.tellParked(id, letters)
		}
		w.mu.Unlock()
	}
}

// tellParked ends those waits for a job that end when it is parked.
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
