// Trips is the worker of the example saga: it connects to the `worker dev` of the
// directory that it is started in, and serves trip.book until SIGTERM or SIGINT.
package main
