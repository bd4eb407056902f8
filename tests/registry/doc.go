// Package registry runs the same operations on every implementation of relayer.Registry:
// Managers over all stores, clients of their servers, and views. It compares results,
// errors and revisions.
package registry
