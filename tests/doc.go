// Package tests holds the proofs that need tools of their own, in a module of
// its own, so that none of them reaches a user's go.mod.
//
// Those that need a browser or PostgreSQL are skipped where there is none, and
// fail there where CI is set.
package tests
