// Package journal is the vocabulary of the audit record: identifiers, raw ledgers, entries with
// their canonical bytes, and the hash chains that bind them.
//
// An Entry says what one plan did, with every digit that changed. Its body is the exact byte
// string that is hashed and stored (J9): Encode writes its only spelling, and Decode refuses
// every other. Both walk the same tables, which have one line per field, and leave out what
// follows from the record's place and from earlier fields (W12). Genesis and Next compute the
// hashes of a chain.
//
// The package is pure: it uses no clock, randomness, network or SQL. The laws of digits are in
// package collation, the fold of entries is in package replay.
package journal
