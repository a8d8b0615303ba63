// Package repair finds out what the tables of a job have otherwise than its journal, and what
// makes them right again (S11). Read takes both, as store.Audit gives them. It verifies the
// journal, and decides for each difference what is written, or why the journal cannot give it
// back. collation.Repaired makes a plan of that, which an engine commits.
//
// Entries do not hold everything that a row holds. Of inputs they have the sum. So a row that is
// gone is made by the same step that made it first: the package does the work of its Leg1 once
// more, on the results that the journal has, and compares the sum.
//
// The package is pure. It never takes anything from the tables that the journal tells.
package repair
