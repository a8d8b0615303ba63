// Package inspect reads one job from its journal: its history, its trace, and what the journal
// proves about its effects. It writes nothing.
package inspect
