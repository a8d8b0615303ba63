// Package below gives the commands and tests of this module what lies below a Runtime:
// ledgers, rows and entries as the store has them, which are no part of its interface.
package below
