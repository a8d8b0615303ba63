// Package javascript is a worker without this library: JavaScript that holds to
// docs/wire.md (T6). Its test runs it with Node, where that is installed.
package javascript
