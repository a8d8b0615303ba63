package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// Kinds of findings. Those of the bus and of the database's settings are transport.TroubleKind and
// postgres.Trouble…; all of them stand in order.
const (
	KindStarting = "starting" // Run has not taken work yet
	KindDraining = "draining" // Run ends
	KindAnother  = "another"  // the database is another one (S13)
	KindEngine   = "engine"   // no engine lives
	KindSilent   = "silent"   // a process is not heard of, and nobody takes over what it holds
	KindSession  = "session"  // the session cannot be renewed
	KindCommit   = "commit"   // nothing can be committed
	KindBusy     = "busy"     // an engine has been deciding on one message for long
	KindSlow     = "slow"     // a commit has been waiting for the database for long
	KindLost     = "lost"     // handlers that end their process
	KindDead     = "dead"     // dead letters wait for a person
	KindStuck    = "quarantined"
	KindWitness  = "witness" // NATS does not store how new the database is (S13)
	KindNobody   = "nobody"  // requests that no process serves
	KindLong     = "long"    // handlers that have run for long
	KindOverdue  = "overdue" // messages that are late
	KindTimer    = "timer"   // timers that are late
)

// order has the kinds, the one that explains the others first.
var order = []string{
	KindStarting, KindDraining, KindAnother, KindEngine, "settings", "read-only", KindSession, KindCommit, KindSlow, "away", "refused", "stream",
	"consumer", KindSilent, KindBusy, KindLost, KindNobody, KindDead, KindStuck, "room", KindWitness, KindLong, KindOverdue,
	KindTimer,
}

// own are the kinds of troubles that a process has of itself.
var own = []string{KindAnother, "settings", "read-only", KindSession, KindCommit, KindSlow, "away", "refused", "stream", "consumer", KindBusy, "room", KindWitness}

// Kinds lists the kinds of troubles that a process has of itself.
func Kinds() []string { return slices.Clone(own) }

// rank is the place of a kind in order; one of another build comes last.
func rank(kind string) int {
	if at := slices.Index(order, kind); at >= 0 {
		return at
	}
	return len(order)
}

// byNATS are the kinds of troubles that say nothing while NATS does not answer.
var byNATS = []string{"refused", "stream", "consumer", "room", KindWitness}

// Order puts the troubles of one process in order, what stops it first, and gives at most
// store.MaxTroubles. Where NATS does not answer, what else it does not do is left out.
func Order(all []store.Trouble) []store.Trouble {
	if slices.ContainsFunc(all, func(x store.Trouble) bool { return x.Kind == "away" }) {
		all = slices.DeleteFunc(all, func(x store.Trouble) bool { return slices.Contains(byNATS, x.Kind) })
	}
	slices.SortStableFunc(all, func(a, b store.Trouble) int {
		return cmp.Or(first(a.Stops, b.Stops), cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
	return all[:min(len(all), store.MaxTroubles)]
}

// first puts true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Times of findings.
const (
	// LongRun is how long a handler may run before that is a finding. An activity without `timeout`
	// has no other bound.
	LongRun = 10 * time.Minute
	// silentFor is how long a process is a finding that nobody declares dead.
	silentFor = time.Hour
)

// Finding is one thing that is wrong with a space.
type Finding struct {
	Kind string
	// Text is a sentence without a full stop.
	Text string
	// Queue says whose messages wait, as store.Trouble's; "" for all of them or none.
	Queue string
	// Stops says that what it is about does not go on before somebody mends it.
	Stops bool
	// N is how many there are of it: processes, letters, jobs, messages.
	N int64
	// For is how long it, or the oldest of them, has been there; 0: not known.
	For time.Duration
	// Processes are those that tell it, by name.
	Processes []string
	// Job and Message are those of an engine that is busy with one, and Job that of a request whose runs
	// end with their process; zero otherwise.
	Job     journal.JobID
	Message journal.GUID
	// Command shows more.
	Command string
}

// Sight is what is to be judged of a space. What was not looked at is nil.
type Sight struct {
	Now time.Time
	// Living are the live processes, and Silent those of store.Sessions.Silent.
	Living, Silent []store.ProcessView
	// Open says that some job is open, so that an engine is needed. Gauges say so, too.
	Open bool
	// Gauges and Topics are what the space has now.
	Gauges *store.Gauges
	Topics []Topic
}

// Topic is one topic of a space.
type Topic struct {
	Name string
	// Queued are the requests that wait, -1 for unknown; Oldest is how long the oldest does.
	Queued int64
	Oldest time.Duration
	// Served says that somebody takes its requests: a process, or a worker in another language.
	Served bool
	// Longest is how long the longest of its runs has gone on.
	Longest time.Duration
}

// Space says what is wrong with a space, the worst first.
func Space(s *Sight) []Finding {
	all := slices.Concat(s.engines(), s.silent(), s.told(), s.busy(), s.tables())
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(first(a.Stops, b.Stops), cmp.Compare(rank(a.Kind), rank(b.Kind)))
	})
	return all
}

// listProcesses lists the processes with their troubles.
const listProcesses = "quipu processes"

// engines: somebody has to decide. The engine that was heard of last is named: nobody else can say whether
// it has ended, or only cannot write to the database.
func (s *Sight) engines() []Finding {
	if !s.deserted() {
		return nil
	}
	f := Finding{
		Kind: KindEngine, Text: "no engine is alive: no job goes on before a process with the role engine runs",
		Stops: true, N: 1, Command: listProcesses,
	}
	var last *store.ProcessView
	for i := range s.Silent {
		if p := &s.Silent[i]; p.Engine && (last == nil || p.Renewed >= last.Renewed) {
			last = p
		}
	}
	if last != nil {
		f.Processes, f.For = []string{last.Name}, s.Now.Sub(time.UnixMicro(int64(last.Renewed)))
		f.Text = "no engine is alive, or none can write to the database: no job goes on before a process with the role engine runs and reaches it; the last one, " +
			last.Name + ", is not heard of any more"
	}
	return []Finding{f}
}

// deserted says that a job is open and no engine is alive.
func (s *Sight) deserted() bool {
	return s.open() && !slices.ContainsFunc(s.Living, func(p store.ProcessView) bool { return p.Engine })
}

// open says whether a job is open.
func (s *Sight) open() bool {
	if s.Open || s.Gauges == nil {
		return s.Open
	}
	for of, n := range s.Gauges.Jobs {
		if of.State == journal.JobOpen && n > 0 {
			return true
		}
	}
	return false
}

// silent: a process that is not heard of, and that nobody declares dead, keeps what it holds. Without an
// engine that is no wonder.
func (s *Sight) silent() (all []Finding) {
	if s.deserted() {
		return nil
	}
	for i := range s.Silent {
		p := &s.Silent[i]
		quiet := s.Now.Sub(time.UnixMicro(int64(p.Renewed)))
		if quiet >= silentFor || quiet < 2*p.Lease { // the others declare it dead in a moment
			continue
		}
		all = append(all, Finding{
			Kind: KindSilent, N: 1, For: max(0, quiet), Processes: []string{p.Name}, Command: listProcesses,
			Text: fmt.Sprintf("process %s is not heard of any more, and no other takes over what it holds: either all are gone, or none can write to the database", p.Name),
		})
	}
	return all
}

// told is what the processes tell, each once.
func (s *Sight) told() (all []Finding) {
	type trouble struct{ kind, name string }
	at := map[trouble]int{}
	for i := range s.Living {
		for _, x := range s.Living[i].Troubles {
			key, lasts := trouble{x.Kind, x.Name}, max(0, s.Now.Sub(time.UnixMicro(int64(x.Since))))
			n, known := at[key]
			if !known {
				n = len(all)
				text := x.Text
				if x.Cause != "" {
					text += ": " + x.Cause
				}
				at[key], all = n, append(all,
					Finding{Kind: x.Kind, Text: text, Queue: x.Queue, Stops: x.Stops, Command: listProcesses})
			}
			f := &all[n]
			f.N, f.For, f.Processes = f.N+1, max(f.For, lasts), append(f.Processes, s.Living[i].Name)
		}
	}
	return all
}

// busy: an engine that decides on one message for long holds up the others.
func (s *Sight) busy() (all []Finding) {
	for i := range s.Living {
		p := &s.Living[i]
		if !p.Engine || p.Busy.For <= 0 {
			continue
		}
		f := Finding{
			Kind: KindBusy, Text: "an engine of process " + p.Name + " is busy with one message, and other work waits behind it", N: 1, For: p.Busy.For,
			Processes: []string{p.Name}, Job: p.Busy.Job, Message: p.Busy.Message, Command: listProcesses,
		}
		if !p.Busy.Job.IsZero() {
			f.Command = "quipu why " + p.Busy.Job.String()
		}
		all = append(all, f)
	}
	return all
}

// tables is what waits for a person, or for too long.
func (s *Sight) tables() (all []Finding) {
	add := func(kind, text string, n int64, oldest time.Duration, command string) {
		if n > 0 {
			all = append(all, Finding{Kind: kind, Text: text, N: n, For: oldest, Command: command})
		}
	}
	for i := range s.Topics {
		t := &s.Topics[i]
		if !t.Served {
			add(KindNobody, "requests that nobody serves: "+t.Name, t.Queued, t.Oldest, "quipu ls --waits topic:"+t.Name)
		}
		if t.Longest >= LongRun {
			add(KindLong, "a handler that has run for long: "+t.Name, 1, t.Longest, "quipu ls --waits topic:"+t.Name)
		}
	}
	g := s.Gauges
	if g == nil {
		return all
	}
	for _, topic := range slices.Sorted(maps.Keys(g.Lost)) {
		x := g.Lost[topic]
		all = append(all, Finding{
			Kind: KindLost, N: x.N, Job: x.Job, Command: "quipu why " + x.Job.String(),
			Text: fmt.Sprintf("requests whose runs end with their process, %d of one so far: %s", x.Most, topic),
		})
	}
	for _, reason := range slices.SortedFunc(maps.Keys(g.Dead), func(x, y string) int {
		return cmp.Or(cmp.Compare(g.Dead[y], g.Dead[x]), cmp.Compare(x, y))
	}) {
		add(KindDead, "dead letters: "+reason, g.Dead[reason], 0, "quipu dead ls --reason "+reason)
	}
	quarantined := map[string]int64{}
	for of, n := range g.Jobs {
		if of.State == journal.JobQuarantined {
			quarantined[of.Flow] = n
		}
	}
	for _, flow := range slices.Sorted(maps.Keys(quarantined)) {
		add(KindStuck, "quarantined jobs of "+flow, quarantined[flow], 0, "quipu ls --state quarantined --flow "+flow)
	}
	add(KindOverdue, "messages that are overdue", g.Overdue.N, g.Overdue.Age, listProcesses)
	add(KindTimer, "timers that are late", g.Timers.N, g.Timers.Age, listProcesses)
	return all
}
