// Package client runs the client against servers on every store, and on one whose commits
// fail, through a proxy that loses connections and responds in place of the server. A
// ledger of the results of the calls is compared with the content of the store. No write
// may take effect twice or be lost, and an unknown outcome must be reported as such.
package client
