// Package netguard classifies the hosts of URLs without resolving them: cloud
// metadata services, the unspecified address, public addresses and loopback, in
// every notation that some client accepts.
package netguard
