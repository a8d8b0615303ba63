// Package keyring is the keys of a space: with them messages and stored results are
// authenticated (S1, S9).
//
// A root secret is drawn at random and kept in the database, where the engine's role alone
// can read it. All other keys follow from it by HKDF: the engine's, one for each topic, and
// one for results in entries. A worker's role reads the keys of its topics and cannot
// derive another one. A Ring is what one process knows of all this; a Keeper keeps it up
// to date.
//
// A MAC is the first 16 bytes of HMAC-SHA256 and names the key that made it, so that a key
// can be rotated while messages are under way.
package keyring
