// Package generated generates clients from the OpenAPI document that a server serves,
// compiles them, and runs them against that server.
package generated
