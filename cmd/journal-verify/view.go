package main

import (
	"github.com/quipu-journal/quipu/journal"
	"github.com/quipu-journal/quipu/replay"
)

// The JSON of --json, one object for each job; see docs/verify.md.
type (
	jobView struct {
		Source         string      `json:"source,omitempty"`
		Job            string      `json:"job,omitempty"`
		Key            string      `json:"key,omitempty"`
		Space          string      `json:"space,omitempty"`
		Generation     int64       `json:"generation,omitempty"`
		State          string      `json:"state,omitempty"`
		KnownExpiredAt string      `json:"expired_by,omitempty"`
		Result         string      `json:"result"` // proved, violated, expired, unreadable
		Error          string      `json:"error,omitempty"`
		Head           *headView   `json:"head,omitempty"`
		Digest         string      `json:"digest,omitempty"`
		Counts         *countView  `json:"counts,omitempty"`
		Checks         []checkView `json:"checks,omitempty"`
		Open           []openView  `json:"open,omitempty"`
		OpenCount      int         `json:"open_count"`
	}
	headView struct {
		Seq  int64  `json:"seq"`
		Hash string `json:"hash"`
	}
	countView struct {
		Entries   int64 `json:"entries"`
		Effects   int64 `json:"effects"`
		Bytes     int64 `json:"bytes"`
		Instances int   `json:"instances"`
		Messages  int   `json:"messages"`
		Rows      int   `json:"rows"`
		Waits     int   `json:"waits"`
		Left      int   `json:"left"`
		Chains    int   `json:"chains"`
		Functions int   `json:"functions"`
		Wakes     int   `json:"wakes"`
	}
	checkView struct {
		ID      string `json:"id"`
		Title   string `json:"title"`
		Result  string `json:"result"` // proved, violated, not proved
		Chain   string `json:"chain,omitempty"`
		Seq     int64  `json:"seq,omitempty"`
		Message string `json:"message,omitempty"`
		Note    string `json:"note,omitempty"`
	}
	openView struct {
		What     string `json:"what"`
		GUID     string `json:"guid"`
		Activity string `json:"activity,omitempty"`
		DAD      string `json:"dad,omitempty"`
		Element  int    `json:"element,omitempty"`
		Topic    string `json:"topic,omitempty"`
		Key      string `json:"key,omitempty"`
		Child    string `json:"child,omitempty"`
		Turn     int    `json:"turn,omitempty"`
		Attempt  int    `json:"attempt,omitempty"`
		NextAt   int64  `json:"next_at,omitempty"`
		Held     string `json:"held,omitempty"`
		Input    string `json:"input,omitempty"` // of a request or a child
		Since    int64  `json:"since"`
		// For a durable function: the request, the name of what stands for it, and for the
		// request itself whether it sleeps, what it waits for, and what of that has come.
		Request   string `json:"request,omitempty"`
		Name      string `json:"name,omitempty"`
		Suspended bool   `json:"suspended,omitempty"`
		Pauses    int    `json:"pauses,omitempty"`
		Came      int    `json:"came,omitempty"`
	}
)

func sumText(s journal.Sum) string {
	if s.IsZero() {
		return ""
	}
	return s.String()
}

func view(o outcome) jobView {
	if o.err != nil {
		v := jobView{Source: o.source, Result: "unreadable", Error: o.err.Error()}
		if !o.job.IsZero() {
			v.Job = o.job.String()
		}
		return v
	}
	r := o.report
	v := jobView{
		Source: o.source, Job: r.Header.Job.String(), Key: r.Header.Key, Space: r.Header.Space,
		Generation: r.Header.Generation, State: string(r.State), Result: "proved",
		Head: &headView{r.Head.Seq, r.Head.Hash.String()}, Digest: r.Digest.String(), OpenCount: r.OpenCount,
		Counts: &countView{
			r.Counts.Entries, r.Counts.Effects, r.Counts.Bytes, r.Counts.Instances, r.Counts.Messages, r.Counts.Rows,
			r.Counts.Waits, r.Counts.Left, r.Counts.Chains, r.Counts.Functions, r.Counts.Wakes,
		},
	}
	switch {
	case r.Violated():
		v.Result = "violated"
	case o.tombstone():
		v.Result = "expired"
	}
	if r.KnownExpiredAt != 0 {
		v.KnownExpiredAt = moment(r.KnownExpiredAt)
	}
	for _, c := range r.Checks {
		v.Checks = append(v.Checks, viewCheck(c))
	}
	for _, x := range r.Open {
		v.Open = append(v.Open, viewOpen(&x))
	}
	return v
}

func viewOpen(x *replay.Open) openView {
	v := openView{
		What: x.What, GUID: x.GUID.String(), Activity: x.Activity, DAD: x.DAD, Element: x.Element, Topic: x.Topic,
		Key:  x.Key,
		Turn: x.Turn, Attempt: x.Attempt, NextAt: x.NextAt, Held: x.Held, Input: sumText(x.Input), Since: x.Since,
		Name: x.Name, Suspended: x.Suspended, Pauses: x.Pauses, Came: x.Came,
	}
	if !x.Request.IsZero() {
		v.Request = x.Request.String()
	}
	if !x.Job.IsZero() {
		v.Child = x.Job.String()
	}
	return v
}

func viewCheck(c replay.Result) checkView {
	v := checkView{ID: string(c.Check), Title: c.Check.Title(), Result: string(c.Status), Note: c.Note}
	if x := c.Violation; x != nil {
		v.Seq, v.Message = x.Seq, x.Message
		if !x.Chain.IsZero() {
			v.Chain = x.Chain.String()
		}
	}
	return v
}
