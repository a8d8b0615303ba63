// Package api is the HTTP API of a space, /api/v1 (O10): start, list, read and wait for jobs,
// signal and interrupt them, decide on dead letters, verify and export. New makes its handler over
// a quipu.Runtime, and Client asks one.
//
// openapi.yaml describes it, and is served as /api/v1/openapi.json. Its paths are the routes of
// this package, and every answer fits its schemas: the tests hold both. Who may do what is package
// access's business: the handler stands behind a Guard, and each route has a role.
package api
