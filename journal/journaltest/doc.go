// Package journaltest is the suite that every implementation of journal/store
// passes. It drives a store as the engine does, with the plans of
// collation.Incept and collation.Step over small flows, and with plans made by
// hand where a case needs one part of a plan alone, or a store must refuse what no
// lawful engine asks for.
//
// Each subtest names the rule that it holds up and runs on a store of its own,
// in parallel with the others. After its work it audits the jobs that it made:
// chains whole, hashes right, tables equal to what the entries say.
package journaltest
