// Package tests holds the proofs that need tools of their own, in a module of
// its own, so that none of them reaches a user's go.mod.
package tests
