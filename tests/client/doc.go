// Package client runs the client against servers on every store, through a proxy that
// loses connections and responds in place of the server. A ledger of what the calls
// returned is compared with what is left in the store: nothing is doubled, nothing is
// lost, and an unknown outcome is reported as such.
package client
