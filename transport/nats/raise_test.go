package nats

import (
	"reflect"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/quipu-journal/quipu/transport"
)

// offline is a bus without a server, for what needs none.
func offline(t *testing.T, change ...func(*Config)) *Bus {
	t.Helper()
	cfg := Config{Space: "shop"}
	for _, f := range change {
		f(&cfg)
	}
	cfg, err := cfg.normalise()
	require.NoError(t, err)
	return &Bus{cfg: cfg, nc: &natsgo.Conn{}}
}

// streamSettings has, for each field of a stream's configuration, what somebody may have
// set, and how it is refused; "" is kept.
var streamSettings = map[string]struct {
	set     func(*jetstream.StreamConfig)
	refused string
}{
	"Name":                 {func(*jetstream.StreamConfig) {}, ""},
	"Description":          {func(c *jetstream.StreamConfig) { c.Description = "theirs" }, ""},
	"Subjects":             {func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other") }, ""},
	"Retention":            {func(c *jetstream.StreamConfig) { c.Retention = jetstream.LimitsPolicy }, "retention is Limits, must be WorkQueue"},
	"MaxConsumers":         {func(c *jetstream.StreamConfig) { c.MaxConsumers = 3 }, "max consumers is 3, must be unlimited or at least 16"},
	"MaxMsgs":              {func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }, ""},
	"MaxBytes":             {func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 40 }, ""},
	"Discard":              {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, "discard is DiscardOld, must be DiscardNew"},
	"DiscardNewPerSubject": {func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject, c.MaxMsgsPerSubject = true, 5 }, "max messages per subject is 5"},
	"MaxAge":               {func(c *jetstream.StreamConfig) { c.MaxAge = time.Minute }, "max age is 1m0s, must be none or at least 1h"},
	"MaxMsgsPerSubject":    {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, "max messages per subject is 5"},
	"MaxMsgSize":           {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }, "max message size is 1000, must be unlimited or at least 278528"},
	"Storage":              {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "storage is Memory, must be File"},
	"Replicas":             {func(c *jetstream.StreamConfig) { c.Replicas = 5 }, ""},
	"NoAck":                {func(c *jetstream.StreamConfig) { c.NoAck = true }, "NoAck is true"},
	"Duplicates":           {func(c *jetstream.StreamConfig) { c.Duplicates = time.Hour }, ""},
	"Placement": {func(c *jetstream.StreamConfig) {
		c.Placement = &jetstream.Placement{Cluster: "east", Tags: []string{"ssd"}}
	}, ""},
	"Mirror":                 {func(c *jetstream.StreamConfig) { c.Mirror = &jetstream.StreamSource{Name: "x"} }, "it is a mirror"},
	"Sources":                {func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "x"}} }, "number of sources is 1"},
	"Sealed":                 {func(c *jetstream.StreamConfig) { c.Sealed = true }, "sealed is true"},
	"DenyDelete":             {func(c *jetstream.StreamConfig) { c.DenyDelete = true }, ""},
	"DenyPurge":              {func(c *jetstream.StreamConfig) { c.DenyPurge = true }, ""},
	"AllowRollup":            {func(c *jetstream.StreamConfig) { c.AllowRollup = true }, ""},
	"Compression":            {func(c *jetstream.StreamConfig) { c.Compression = jetstream.S2Compression }, ""},
	"FirstSeq":               {func(c *jetstream.StreamConfig) { c.FirstSeq = 7 }, ""},
	"SubjectTransform":       {func(c *jetstream.StreamConfig) { c.SubjectTransform = &jetstream.SubjectTransformConfig{} }, "subject transform is set"},
	"RePublish":              {func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Destination: "copy"} }, ""},
	"AllowDirect":            {func(c *jetstream.StreamConfig) { c.AllowDirect = true }, ""},
	"MirrorDirect":           {func(c *jetstream.StreamConfig) { c.MirrorDirect = true }, ""},
	"ConsumerLimits":         {func(c *jetstream.StreamConfig) { c.ConsumerLimits.MaxAckPending = 9 }, "max ack pending is 9, must be unlimited or at least 65536"},
	"Metadata":               {func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{"team": "a"} }, ""},
	"Template":               {func(*jetstream.StreamConfig) {}, ""},
	"AllowMsgTTL":            {func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, ""},
	"SubjectDeleteMarkerTTL": {func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Minute }, "delete marker TTL is 1m0s"},
	"AllowMsgCounter":        {func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true }, "AllowMsgCounter is true"},
	"AllowAtomicPublish":     {func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = true }, ""},
	"AllowMsgSchedules":      {func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true }, ""},
	"PersistMode":            {func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, "persist mode is async"},
	"AllowBatchPublish":      {func(c *jetstream.StreamConfig) { c.AllowBatchPublish = true }, ""},
}

// S5: every setting of a stream is either kept or refused with both values. A setting that
// a new client library adds needs a line here.
func TestS5EachSettingOfAStream(t *testing.T) {
	t.Parallel()
	b := offline(t)
	for f := range reflect.TypeFor[jetstream.StreamConfig]().Fields() {
		line, known := streamSettings[f.Name]
		require.True(t, known, "what is to become of a stream's %s?", f.Name)
		have := b.streamConfig(transport.Lane)
		line.set(&have)
		want, up := b.raised(have, transport.Lane)
		require.Equal(t, have, want, f.Name)
		require.Empty(t, up, f.Name)
		problems := strings.Join(b.streamProblems(&want, transport.Lane), "\n")
		if line.refused == "" {
			require.Empty(t, problems, f.Name)
		} else {
			require.Contains(t, problems, line.refused, f.Name)
		}
	}
}

// S5: what a process was told to have is raised, and only where the stream has less.
func TestS5RaisesWhatIsConfigured(t *testing.T) {
	t.Parallel()
	b := offline(t, func(c *Config) {
		c.Replicas, c.MaxBytes, c.MaxAge = 3, 1<<30, 24*time.Hour
		c.PlacementCluster, c.PlacementTags = "east", []string{"ssd"}
	})
	plain := offline(t).streamConfig(transport.Start)
	less := plain
	less.Replicas, less.MaxBytes, less.MaxAge, less.Duplicates = 1, 1<<20, time.Minute, time.Second
	less.Subjects, less.Placement = []string{"theirs"}, &jetstream.Placement{Tags: []string{"eu"}}
	less.Description, less.Compression = "theirs", jetstream.S2Compression
	got, up := b.raised(less, transport.Start)
	want := less
	want.Replicas, want.MaxBytes, want.MaxAge, want.Duplicates = 3, 1<<30, 24*time.Hour, DuplicateWindow
	want.Subjects = []string{"theirs", "quipu.shop.start"}
	want.Placement = &jetstream.Placement{Cluster: "east", Tags: []string{"eu", "ssd"}}
	require.Equal(t, want, got)
	require.Len(t, up, 6)
	require.Contains(t, strings.Join(up, "\n"), "Replicas from 1 to 3")

	more := plain
	more.Replicas, more.MaxBytes, more.MaxAge, more.Duplicates = 5, -1, 0, time.Hour
	more.Placement = &jetstream.Placement{Cluster: "west", Tags: []string{"eu", "ssd"}}
	got, up = b.raised(more, transport.Start)
	require.Equal(t, more, got, "nothing is taken away, and no stream moves to another cluster")
	require.Empty(t, up)
	require.Contains(t, b.streamWarnings(&more)[0], "it is in the cluster west, and Placement asks for east")
}

// consumerSettings has, for each field of a consumer's configuration, what somebody may
// have set, and what becomes of it: kept, ours, or a part of the refusal.
var consumerSettings = map[string]struct {
	set func(*jetstream.ConsumerConfig)
	is  string
}{
	"Name":               {func(c *jetstream.ConsumerConfig) { c.Name = "lane-0" }, "kept"},
	"Durable":            {func(*jetstream.ConsumerConfig) {}, "kept"},
	"Description":        {func(c *jetstream.ConsumerConfig) { c.Description = "theirs" }, "kept"},
	"DeliverPolicy":      {func(c *jetstream.ConsumerConfig) { c.DeliverPolicy = jetstream.DeliverNewPolicy }, "deliver policy is new, must be all"},
	"OptStartSeq":        {func(c *jetstream.ConsumerConfig) { c.OptStartSeq = 3 }, "kept"},
	"OptStartTime":       {func(c *jetstream.ConsumerConfig) { c.OptStartTime = new(time.Time) }, "kept"},
	"AckPolicy":          {func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy }, "ack policy is AckAll, must be AckExplicit"},
	"AckWait":            {func(c *jetstream.ConsumerConfig) { c.AckWait = time.Hour }, "ours"},
	"MaxDeliver":         {func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 3 }, "ours"},
	"BackOff":            {func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{time.Hour} }, "ours"},
	"FilterSubject":      {func(c *jetstream.ConsumerConfig) { c.FilterSubject = "else" }, "ours"},
	"ReplayPolicy":       {func(c *jetstream.ConsumerConfig) { c.ReplayPolicy = jetstream.ReplayOriginalPolicy }, "replay policy is original, must be instant"},
	"RateLimit":          {func(c *jetstream.ConsumerConfig) { c.RateLimit = 5 }, "kept"},
	"SampleFrequency":    {func(c *jetstream.ConsumerConfig) { c.SampleFrequency = "10%" }, "kept"},
	"MaxWaiting":         {func(c *jetstream.ConsumerConfig) { c.MaxWaiting = 5 }, "max waiting is 5, must be at least 4096"},
	"MaxAckPending":      {func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 5 }, "ours"},
	"HeadersOnly":        {func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true }, "ours"},
	"MaxRequestBatch":    {func(c *jetstream.ConsumerConfig) { c.MaxRequestBatch = 5 }, "max batch of a pull is 5"},
	"MaxRequestExpires":  {func(c *jetstream.ConsumerConfig) { c.MaxRequestExpires = time.Second }, "max expiry of a pull is 1s"},
	"MaxRequestMaxBytes": {func(c *jetstream.ConsumerConfig) { c.MaxRequestMaxBytes = 5 }, "kept"},
	"InactiveThreshold":  {func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Hour }, "kept"},
	"Replicas":           {func(c *jetstream.ConsumerConfig) { c.Replicas = 3 }, "kept"},
	"MemoryStorage":      {func(c *jetstream.ConsumerConfig) { c.MemoryStorage = true }, "kept"},
	"FilterSubjects":     {func(c *jetstream.ConsumerConfig) { c.FilterSubject, c.FilterSubjects = "", []string{"a", "b"} }, "ours"},
	"Metadata":           {func(c *jetstream.ConsumerConfig) { c.Metadata = map[string]string{"team": "a"} }, "kept"},
	"PauseUntil":         {func(c *jetstream.ConsumerConfig) { c.PauseUntil = new(time.Time) }, "kept"},
	"PriorityPolicy":     {func(c *jetstream.ConsumerConfig) { c.PriorityPolicy = jetstream.PriorityPolicyNone }, "ours"},
	"PinnedTTL":          {func(c *jetstream.ConsumerConfig) { c.PinnedTTL = time.Hour }, "ours"},
	"PriorityGroups":     {func(c *jetstream.ConsumerConfig) { c.PriorityGroups = []string{"theirs"} }, "ours"},
	"DeliverSubject":     {func(c *jetstream.ConsumerConfig) { c.DeliverSubject = "push" }, "deliver subject is push"},
	"DeliverGroup":       {func(c *jetstream.ConsumerConfig) { c.DeliverGroup = "g" }, "kept"},
	"FlowControl":        {func(c *jetstream.ConsumerConfig) { c.FlowControl = true }, "kept"},
	"IdleHeartbeat":      {func(c *jetstream.ConsumerConfig) { c.IdleHeartbeat = time.Hour }, "kept"},
}

// S5: every setting of a consumer is kept, or given the value that all processes rely on,
// or refused with both values.
func TestS5EachSettingOfAConsumer(t *testing.T) {
	t.Parallel()
	b := offline(t)
	want := b.consumerConfig(transport.ToLane(0))
	for f := range reflect.TypeFor[jetstream.ConsumerConfig]().Fields() {
		line, known := consumerSettings[f.Name]
		require.True(t, known, "what is to become of a consumer's %s?", f.Name)
		have := want
		line.set(&have)
		got, changed := raisedConsumer(have, want)
		problems := strings.Join(b.consumerProblems(&got), "\n")
		switch line.is {
		case "kept":
			require.Equal(t, have, got, f.Name)
			require.False(t, changed, f.Name)
			require.Empty(t, problems, f.Name)
		case "ours":
			require.Equal(t, want, got, f.Name)
			require.True(t, changed, f.Name)
			require.Empty(t, problems, f.Name)
		default:
			require.Contains(t, problems, line.is, f.Name)
		}
	}
	for _, larger := range []int{-1, 1 << 20} {
		have := want
		have.MaxAckPending = larger
		got, changed := raisedConsumer(have, want)
		require.Equal(t, larger, got.MaxAckPending, "a larger limit stays")
		require.False(t, changed)
	}
}
