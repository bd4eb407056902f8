// Package stores tests what all stores, and all implementations of relayer.Registry, have in
// common. It runs the same operations on Managers over all stores, clients of their servers, and
// views, and compares results, errors and revisions. It records concurrent calls of a store and
// checks that the results are linearizable: some sequential order of the calls gives the same.
// Its benchmarks measure reads and writes of the stores.
package stores
