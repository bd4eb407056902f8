// Package actorkey has the key of the actor in a context, so that package httpapi can
// implement a context without an allocation.
package actorkey

// Key is the key of a value of the type *relayer.Actor.
type Key struct{}
