// Shop is the service of docs/tutorial.md. It serves the topics shop.charge and shop.ship of the
// `worker dev` in its working directory, until SIGTERM or SIGINT.
package main
