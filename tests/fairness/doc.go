// Package fairness sends as much as one token can, over real sockets and with the default
// settings, and tests that the requests of another token are served meanwhile. It needs a
// few seconds. With RELAYER_FAIRNESS=full it has 100,000 relayers and attacks for 20 seconds
// each, and prints how long the requests took.
package fairness
