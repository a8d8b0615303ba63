package view

import (
	"time"

	"github.com/quipu-journal/quipu/journal"
)

// FlowVersion is a deployed version of a flow.
type FlowVersion struct {
	Flow     string         `json:"flow"`
	Version  string         `json:"version"`
	Digest   journal.Digest `json:"digest"`
	Active   bool           `json:"active"` // new jobs take it
	Deployed time.Time      `json:"deployed"`
}

// Deployed says what became of a version of a flow that somebody deployed.
type Deployed struct {
	Flow    string         `json:"flow"`
	Version string         `json:"version"`
	Digest  journal.Digest `json:"digest"`
	Fresh   bool           `json:"fresh"`  // it was not there before
	Active  bool           `json:"active"` // new jobs take it
}
