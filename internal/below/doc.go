// Package below gives the commands and tests of this module the store below a Runtime: ledgers,
// rows and entries, which are not part of the Runtime's interface.
package below
