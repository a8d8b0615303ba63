// Package exampletest runs the flows of an example on real servers: an embedded
// NATS and a private Postgres, as `worker dev` has them, an engine, and the
// built-in handlers beside those of the example. Open is the way in.
package exampletest
