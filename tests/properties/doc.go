// Package properties holds what must be true of every relayer there can be, and
// looks for one of which it is not.
package properties
