package nats

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/quipu-journal/quipu/transport"
)

// Part is what a process does on NATS, by which its rights differ (S4).
type Part string

// The parts.
const (
	Engine Part = "engine" // makes streams and consumers, pulls lanes, sends everything; may do all else, too
	Worker Part = "worker" // pulls its topics and answers
	Client Part = "client" // starts jobs, signals them, waits for them; it can publish only with the engine's key
)

// Rights are the subjects that a user of NATS needs, as its server takes them.
type Rights struct {
	Publish, Subscribe []string
	// Answers says that the user answers requests.
	Answers bool
}

// Inbox is the prefix of the inboxes of a process. It differs by part and topics, so that no
// user can read what another is sent. topics are those of a worker.
func Inbox(space string, part Part, topics []string) string {
	if part != Worker {
		return "_INBOX." + space + "." + string(part)
	}
	if len(topics) == 1 {
		return "_INBOX." + space + "." + durableName(transport.ToWork(topics[0]))
	}
	topics = slices.Sorted(slices.Values(topics))
	sum := sha256.Sum256([]byte(strings.Join(topics, "\n")))
	return "_INBOX." + space + ".work-" + hex.EncodeToString(sum[:8])
}

// RightsOf returns what a process needs on NATS (S4). Of cfg it reads Space, Domain, Prefix and Inbox.
// topics are those of a worker, at least one. The error names what is wrong.
func RightsOf(cfg Config, part Part, topics []string) (Rights, error) {
	if err := validateSpace(cfg.Space); err != nil {
		return Rights{}, err
	}
	if cfg.Inbox == "" {
		cfg.Inbox = Inbox(cfg.Space, part, topics)
	}
	setDefault(&cfg.Prefix, DefaultPrefix)
	if err := cfg.checkStreams(); err != nil {
		return Rights{}, err
	}
	b := &Bus{cfg: cfg, api: apiPrefix(cfg.Domain)}
	r, err := b.rightsOf(part, topics)
	if cfg.Domain != "" { // a server of the domain itself looks at the subjects without it
		for _, s := range slices.Clone(r.Publish) {
			if call, ok := strings.CutPrefix(s, b.api); ok {
				r.Publish = append(r.Publish, apiPrefix("")+call)
			}
		}
	}
	return r, err
}

func (b *Bus) rightsOf(part Part, topics []string) (Rights, error) {
	switch part {
	case Engine:
		return b.engineRights(), nil
	case Client:
		space := b.subjects()
		return Rights{
			Publish:   []string{space + "start", space + "lane.*", space + "work.>"},
			Subscribe: []string{b.cfg.Inbox + ".>", space + "ended.*"},
		}, nil
	case Worker:
	default:
		return Rights{}, fmt.Errorf("role %.40q: use %s, %s or %s", part, Engine, Worker, Client)
	}
	if len(topics) == 0 {
		return Rights{}, fmt.Errorf("a worker has at least one topic")
	}
	r := Rights{Publish: []string{b.subjects() + "lane.*"}, Subscribe: []string{b.cfg.Inbox + ".>"}}
	stream := b.streamName(transport.Work)
	for _, topic := range topics {
		d := transport.ToWork(topic)
		if err := d.Validate(); err != nil {
			return Rights{}, err
		}
		r.Publish = append(r.Publish, b.api+"CONSUMER.MSG.NEXT."+stream+"."+durableName(d), b.askSubject(topic))
		r.Publish = append(r.Publish, acks(stream, durableName(d))...)
	}
	return r, nil
}

// acks are the subjects on which deliveries of a consumer are finished: those of servers
// before 2.11 or without a domain, and those with domain and account.
func acks(stream, consumer string) []string {
	return []string{"$JS.ACK." + stream + "." + consumer + ".>", "$JS.ACK.*.*." + stream + "." + consumer + ".>"}
}

func (b *Bus) engineRights() Rights {
	r := Rights{
		Publish:   []string{b.subjects() + ">", b.api + "INFO"},
		Subscribe: []string{b.cfg.Inbox + ".>", b.subjects() + "ended.*", b.askSubject(">")},
		Answers:   true,
	}
	for _, call := range []string{"STREAM.CREATE.", "STREAM.UPDATE.", "STREAM.INFO.", "STREAM.MSG.GET.", "STREAM.MSG.DELETE."} { // S13
		r.Publish = append(r.Publish, b.api+call+b.witnessConfig().Name)
	}
	for _, kind := range kinds {
		stream := b.streamName(kind)
		for _, call := range []string{
			"STREAM.CREATE.", "STREAM.UPDATE.", "STREAM.INFO.", "STREAM.DELETE.", "STREAM.PURGE.", "STREAM.MSG.GET.", "STREAM.MSG.DELETE.", "CONSUMER.LIST.",
		} {
			r.Publish = append(r.Publish, b.api+call+stream)
		}
		for _, call := range []string{
			"CONSUMER.CREATE." + stream + ".>", "CONSUMER.INFO." + stream + ".*", "CONSUMER.MSG.NEXT." + stream + ".*", "CONSUMER.UNPIN." + stream + ".*", "CONSUMER.PAUSE." + stream + ".*",
		} {
			r.Publish = append(r.Publish, b.api+call)
		}
		r.Publish = append(r.Publish, acks(stream, "*")...)
	}
	return r
}

// String is the rights as a block of a NATS server's configuration, for a user.
func (r Rights) String() string {
	var b strings.Builder
	list := func(name string, subjects []string) {
		if len(subjects) == 0 {
			fmt.Fprintf(&b, "  %s: { deny: [ \">\" ] }\n", name)
			return
		}
		fmt.Fprintf(&b, "  %s: { allow: [\n", name)
		for _, s := range subjects {
			fmt.Fprintf(&b, "    %q\n", s)
		}
		b.WriteString("  ] }\n")
	}
	b.WriteString("permissions: {\n")
	list("publish", r.Publish)
	list("subscribe", r.Subscribe)
	if r.Answers {
		b.WriteString("  allow_responses: { max: 1, expires: \"1m\" }\n")
	}
	b.WriteString("}\n")
	return b.String()
}
