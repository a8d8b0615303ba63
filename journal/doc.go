// Package journal holds the vocabulary of the audit record: identifiers, raw
// ledgers, entries with their canonical bytes, and the hash chains that bind
// them.
//
// An Entry says what one plan did, with every digit it moved. Its body is the
// exact byte string that is hashed and stored (rule J9): Encode produces the
// only spelling there is, Decode refuses every other one. Both walk the same
// tables of fields, in which a field has one line, and leave out what follows from
// the record's place and from the fields before it (W12). Genesis and Next compute the
// hashes of a chain.
//
// The package is pure: it knows no clock, randomness, network or SQL. Laws over
// the digits live in package collation, folding of entries in package replay.
package journal
