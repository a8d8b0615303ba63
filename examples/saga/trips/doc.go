// Trips is the worker of the example saga. It connects to the `worker dev` of its working
// directory, and serves trip.book until SIGTERM or SIGINT.
package main
