// Package storeutil has parts of a [relayer.Store] for storage engines that lack them: a
// change feed ([Feed]), a queue of writes that are committed together ([Queue]), the selection
// of records ([Scan], [Selects]), and the check of the limits of a record ([Check]). The package examples/mapstore is a complete store that
// uses them.
package storeutil
