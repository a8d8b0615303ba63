package telemetry

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/quipu-journal/quipu/telemetry/observer"
)

// Limits of what goes into a span or a metric.
const (
	// MaxText bounds an attribute's value and an error's text, in bytes.
	MaxText = 512
	// MaxName bounds a span's name, in bytes.
	MaxName = 128
)

// Names of the attributes.
const (
	keySpace    = "quipu.space"
	keyJob      = "quipu.job"
	keyKey      = "quipu.key"
	keyFlow     = "quipu.flow"
	keyActivity = "quipu.activity"
	keyDAD      = "quipu.dad"
	keyGUID     = "quipu.guid"
	keyTopic    = "quipu.topic"
	keyTurn     = "quipu.turn"
	keyAttempt  = "quipu.attempt"
	keyLink     = "quipu.link"
	keyError    = "error.type"
)

// attributes are the non-empty fields of a subject.
func attributes(s observer.Subject) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, 10)
	for _, f := range [...]struct{ key, value string }{
		{keySpace, s.Space},
		{keyJob, s.Job},
		{keyKey, s.Key},
		{keyFlow, s.Flow},
		{keyActivity, s.Activity},
		{keyDAD, s.DAD},
		{keyGUID, s.GUID},
		{keyTopic, s.Topic},
	} {
		if f.value != "" {
			out = append(out, attribute.String(f.key, cut(f.value, MaxText)))
		}
	}
	for _, f := range [...]struct {
		key   string
		value int
	}{{keyTurn, s.Turn}, {keyAttempt, s.Attempt}} {
		if f.value != 0 {
			out = append(out, attribute.Int(f.key, f.value))
		}
	}
	return out
}

// spanName is the kind of work and its subject. It only uses names from the deployed
// flow, so it has few values however many jobs run.
func spanName(kind string, s observer.Subject) string {
	about := s.Activity
	if about == "" {
		about = s.Flow
	}
	if about == "" {
		return kind
	}
	return cut(kind+" "+about, MaxName)
}

func spanKind(kind string) trace.SpanKind {
	switch kind {
	case observer.SpanPublish:
		return trace.SpanKindProducer
	case observer.SpanSignal:
		return trace.SpanKindConsumer
	case observer.SpanCommit:
		return trace.SpanKindClient
	}
	return trace.SpanKindInternal
}

// fail sets the error status of a span; nothing for nil.
func (t *Telemetry) fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	kind := errorType(err)
	text := kind
	if t.errorText {
		text = cut(err.Error(), MaxText)
	}
	span.SetAttributes(attribute.String(keyError, kind))
	span.SetStatus(codes.Error, text)
}

// errorType names an error without its text: the type of the innermost error.
func errorType(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// cut shortens s to at most limit bytes of whole runes.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
