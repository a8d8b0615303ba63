// Package natsflags has the flags of quipu.NATSOptions, which the commands that connect to NATS
// share (S5). Names and variables are those that cli.Configuration and quipu.ConfigFromEnv know.
package natsflags
