// Package attacks tries what an attacker would, by name, on real servers: with a stolen
// login of NATS or of the database, with changed tables, and with input that aims at the
// process or at the network inside. Each test fails on a build without its S-rule.
package attacks
