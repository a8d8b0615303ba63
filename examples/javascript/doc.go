// Package javascript is a worker without this library, written in JavaScript after docs/wire.md
// (T6), and a client that is made from the document of the HTTP API (O10). Their tests run them
// with Node, if that is installed.
package javascript
