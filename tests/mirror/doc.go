// Package mirror compares views of package mirror with the registries that they follow: over
// every store, in the same process and through a client, with gaps, lost connections and
// restarts of the server.
package mirror
