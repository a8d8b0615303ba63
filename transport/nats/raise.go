package nats

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/quipu-journal/quipu/transport"
)

// MinMaxAge is the least age at which a stream may drop messages: the longest ack wait. A
// dropped message is sent again by its row, but behind those that wait already. A limit
// that is shorter than the backlog would drop it again and again.
const MinMaxAge = time.Hour

// raised returns the settings of a stream that is there, with what this process was told
// to have and the stream has less of (S5). The second result names these settings with
// both values; without any, the stream is left alone.
//
// Everything else stays as it is: more replicas, more bytes, a longer age or none, a
// placement, compression, and whatever else an operator has set. So processes with
// different configurations agree, too: the larger value of each setting stays.
func (b *Bus) raised(have jetstream.StreamConfig, kind transport.Kind) (jetstream.StreamConfig, []string) {
	want, up := have, []string(nil)
	raise := func(what string, from, to any) { up = append(up, fmt.Sprintf("%s from %v to %v", what, from, to)) }
	if subject := b.streamSubject(kind); !slices.Contains(have.Subjects, subject) {
		want.Subjects = append(slices.Clone(have.Subjects), subject)
		raise("subjects", have.Subjects, want.Subjects)
	}
	if have.Replicas < b.cfg.Replicas {
		want.Replicas = b.cfg.Replicas
		raise("Replicas", have.Replicas, want.Replicas)
	}
	if have.MaxBytes > 0 && have.MaxBytes < b.cfg.MaxBytes {
		want.MaxBytes = b.cfg.MaxBytes
		raise("MaxBytes", have.MaxBytes, want.MaxBytes)
	}
	if have.MaxAge > 0 && have.MaxAge < b.cfg.MaxAge {
		want.MaxAge = b.cfg.MaxAge
		raise("MaxAge", have.MaxAge, want.MaxAge)
	}
	if have.Duplicates < DuplicateWindow {
		want.Duplicates = DuplicateWindow
		raise("the duplicate window", have.Duplicates, want.Duplicates)
	}
	if placement := b.placed(have.Placement); placement != nil {
		want.Placement = placement
		raise("Placement", placementText(have.Placement), placementText(placement))
	}
	return want, up
}

// placed returns the placement of a stream with the cluster and the tags of Config that
// it does not have; nil if it has them all. It never moves a stream from one cluster to
// another, because two processes could then move it to and fro: Preflight warns.
func (b *Bus) placed(have *jetstream.Placement) *jetstream.Placement {
	var want jetstream.Placement
	if have != nil {
		want = *have
	}
	want.Cluster = cmp.Or(want.Cluster, b.cfg.PlacementCluster)
	want.Tags = slices.Clone(want.Tags)
	for _, tag := range b.cfg.PlacementTags {
		if !slices.Contains(want.Tags, tag) {
			want.Tags = append(want.Tags, tag)
		}
	}
	if placementText(have) == placementText(&want) {
		return nil
	}
	return &want
}

func placementText(p *jetstream.Placement) string {
	if p == nil || p.Cluster == "" && len(p.Tags) == 0 {
		return "none"
	}
	return strings.TrimSpace(p.Cluster + " " + strings.Join(p.Tags, " "))
}

// problems lists settings that break the promise, with both values.
type problems []string

// refuse adds a setting that is bad.
func (p *problems) refuse(bad bool, what string, is any, must string) {
	if bad {
		*p = append(*p, fmt.Sprintf("%s is %v, must be %s", what, is, must))
	}
}

// streamProblems lists the settings of a stream that break the promise, each with both
// values. No process changes them: they may be somebody's intention, or cannot be changed.
func (b *Bus) streamProblems(is *jetstream.StreamConfig, kind transport.Kind) []string {
	var p problems
	p.refuse(is.Retention != jetstream.WorkQueuePolicy, "retention", is.Retention, "WorkQueue")
	p.refuse(is.Discard != jetstream.DiscardNew, "discard", is.Discard, "DiscardNew: a full stream would drop messages and not push back")
	p.refuse(is.Storage != jetstream.FileStorage, "storage", is.Storage, "File")
	p.refuse(is.PersistMode == jetstream.AsyncPersistMode, "persist mode", "async", "default: a PubAck would come before the write")
	p.refuse(is.NoAck, "NoAck", is.NoAck, "false: there would be no PubAcks")
	p.refuse(is.Sealed, "sealed", is.Sealed, "false: it takes no messages")
	p.refuse(is.Mirror != nil, "it", "a mirror", "a stream of its own")
	p.refuse(len(is.Sources) > 0, "its number of sources", len(is.Sources), "0: it would have messages of other streams")
	p.refuse(is.SubjectTransform != nil, "subject transform", "set", "none: consumers would not find the messages")
	p.refuse(is.AllowMsgCounter, "AllowMsgCounter", is.AllowMsgCounter, "false: messages are no counters")
	p.refuse(is.SubjectDeleteMarkerTTL > 0, "subject delete marker TTL", is.SubjectDeleteMarkerTTL, "0: markers would come as messages")
	p.refuse(is.MaxMsgsPerSubject > 0, "max messages per subject", is.MaxMsgsPerSubject, "unlimited: the oldest would be dropped")
	p.refuse(is.MaxAge > 0 && is.MaxAge < MinMaxAge, "max age", is.MaxAge, "none or at least "+MinMaxAge.String()+": what is dropped is sent again, behind what waits already")
	size := int32(min(b.MaxPayload(), InlinePayload))
	p.refuse(is.MaxMsgSize > 0 && is.MaxMsgSize < size, "max message size", is.MaxMsgSize, fmt.Sprintf("unlimited or at least %d", size))
	consumers := 1
	if kind == transport.Lane {
		consumers = b.cfg.Lanes
	}
	p.refuse(is.MaxConsumers > 0 && is.MaxConsumers < consumers, "max consumers", is.MaxConsumers, fmt.Sprintf("unlimited or at least %d", consumers))
	unacked := is.ConsumerLimits.MaxAckPending
	p.refuse(unacked > 0 && unacked < MaxAckPending, "the consumers' limit of max ack pending", unacked, fmt.Sprintf("unlimited or at least %d", MaxAckPending))
	return p
}

// streamWarnings lists what a stream has otherwise than Config asks, and keeps.
func (b *Bus) streamWarnings(is *jetstream.StreamConfig) []string {
	if p := is.Placement; p != nil && b.cfg.PlacementCluster != "" && p.Cluster != "" &&
		p.Cluster != b.cfg.PlacementCluster {
		return []string{fmt.Sprintf("it is in the cluster %s, and Placement asks for %s: it stays there until you move it", p.Cluster, b.cfg.PlacementCluster)}
	}
	return nil
}

// raisedConsumer returns the settings of a consumer that is there, with those that every
// process relies on (T5): whose messages it gives out, how often, after which ack wait,
// and to whom they are pinned. What only an operator cares about stays: description,
// metadata, sampling, larger limits, its replicas and where its state is kept. A pause is ended by
// resume.
// The second result says whether that changes it.
func raisedConsumer(have, want jetstream.ConsumerConfig) (jetstream.ConsumerConfig, bool) {
	c := have
	c.FilterSubject, c.FilterSubjects = want.FilterSubject, nil
	c.AckWait, c.BackOff = want.AckWait, nil
	c.MaxDeliver = want.MaxDeliver
	if have.MaxAckPending > 0 {
		c.MaxAckPending = max(have.MaxAckPending, want.MaxAckPending)
	}
	c.PriorityPolicy, c.PriorityGroups, c.PinnedTTL = want.PriorityPolicy, want.PriorityGroups, want.PinnedTTL
	c.HeadersOnly = false
	return c, !reflect.DeepEqual(c, have)
}

// resumeIn is when the pause of a consumer ends that is resumed. The server gives out what waits when
// the time of a pause has come, but not at once when it is taken away.
const resumeIn = 500 * time.Millisecond

// resume ends the pause of a consumer: its jobs would stand still for as long, and nothing else
// would tell. An update of the consumer does not change a pause.
func (b *Bus) resume(ctx context.Context, info *jetstream.ConsumerInfo) error {
	until := info.Config.PauseUntil
	if until == nil || !until.After(info.TimeStamp.Add(resumeIn)) {
		return nil
	}
	if _, err := b.js.PauseConsumer(ctx, info.Stream, info.Name, info.TimeStamp.Add(resumeIn)); err != nil {
		return fmt.Errorf("resume the consumer, which somebody paused until %s: %w", until.UTC().Format(time.RFC3339), err)
	}
	b.cfg.Log.Warn("a consumer was paused, and nothing went its way: it goes on", "space", b.cfg.Space,
		"stream", info.Stream, "consumer", info.Name, "until", until.UTC())
	return nil
}

// consumerProblems lists the settings of a consumer with which it gives nothing out, each
// with both values. The server cannot change most of them.
func (b *Bus) consumerProblems(is *jetstream.ConsumerConfig) []string {
	var p problems
	p.refuse(is.DeliverSubject != "", "deliver subject", is.DeliverSubject, "none: processes pull")
	p.refuse(is.DeliverPolicy != jetstream.DeliverAllPolicy, "deliver policy", is.DeliverPolicy, jetstream.DeliverAllPolicy.String())
	p.refuse(is.AckPolicy != jetstream.AckExplicitPolicy, "ack policy", is.AckPolicy, jetstream.AckExplicitPolicy.String())
	p.refuse(is.ReplayPolicy != jetstream.ReplayInstantPolicy, "replay policy", is.ReplayPolicy,
		jetstream.ReplayInstantPolicy.String())
	p.refuse(is.MaxWaiting > 0 && is.MaxWaiting < MaxWaiting, "max waiting", is.MaxWaiting, fmt.Sprintf("at least %d", MaxWaiting))
	p.refuse(is.MaxRequestBatch > 0 && is.MaxRequestBatch < transport.MaxSlots, "max batch of a pull", is.MaxRequestBatch,
		fmt.Sprintf("unlimited or at least %d", transport.MaxSlots))
	p.refuse(is.MaxRequestExpires > 0 && is.MaxRequestExpires < b.cfg.PullExpires, "max expiry of a pull", is.MaxRequestExpires,
		"unlimited or at least "+b.cfg.PullExpires.String())
	return p
}
