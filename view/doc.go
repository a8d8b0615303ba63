// Package view is one job as everybody sees it: who calls a Runtime, who asks the HTTP API, who reads
// the output of a command (-o json), and who opens the console. There is one Go type and one JSON form
// for each thing that a job has.
//
// A Job is what the tables say of it as it stands. Where its journal was read, too, it has its Input,
// what each activity got and gave, and what was asked for beyond that: all its Messages, its Events,
// its Tree of spans. A Job can be seen as it stood at any entry of its journal; then everything in it
// is told by the entries up to that one.
//
// The package has types alone, and how they are written in JSON.
package view
