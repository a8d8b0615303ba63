// Package javascript is a worker without this library, written in JavaScript after docs/wire.md
// (T6). Its test runs it with Node, if that is installed.
package javascript
