// Package fairness sends as much as one token can, over real sockets and with the default
// settings, and tests that the requests of another token are served meanwhile. It needs a
// few seconds. With the flag -full it has 100,000 relayers, attacks for 20 seconds each,
// prints how long the requests took, and bounds their processor time by four times that
// without an attack.
//
// The processor time of a request is that of the thread that calls the handler. It includes
// the part of the garbage collection that falls to the request. It does not include net/http,
// the goroutines of a store that commit the writes of many requests, PostgreSQL, and the
// goroutines of streams that send a change. Every measured request begins with caches of the
// processor that are cold, also without an attack: an attack fills them, as other work of the
// machine does.
package fairness
