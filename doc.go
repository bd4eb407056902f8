// Package relayer is an embeddable registry of blockchain relayers.
//
// A relayer is a configured entity that relays transactions: it has a name, is
// bound to one signer and one network, may have RPC endpoints of its own, can
// be paused, and carries a policy that says what it may do. The registry keeps
// these settings. It sends no transactions and holds no keys.
//
// # Manager and Store
//
// A [Manager] is the registry. It checks what it is given, fills in what is left
// out, and keeps the result in a [Store]. The host opens the store, gives it to
// [New], and closes it when it is done; store/memory, store/bolt and, for several
// instances that share one registry, store/postgres are stores to choose from. A
// host that has an engine of its own writes the five methods of [Store] and
// proves them with storetest.Run. The package store/transfer copies all relayers
// from one store to another.
//
// [Manager.Create] and [Manager.CreateDocument] add a relayer: from a
// [CreateRequest] in Go, or from JSON as it comes over the wire or out of a
// file. Both check the same rules and store the same thing. [Manager.Get],
// [Manager.List] and [Manager.All] read. The list is in creation order, oldest
// first, on every store, so that pages already read do not shift when relayers
// are added.
//
// [Manager.Update] and [Manager.PatchDocument] change a relayer, and
// [Manager.Delete] takes it away. [Manager.Pause] is the operator's switch and
// [Manager.Disable] the host's own; the two are independent. [Manager.Watch]
// gives the changes made through the Manager as they are made, and on a store
// that is shared those that others make.
//
// A [Relayer] is a copy: changing it changes nothing that is stored. All methods
// of a Manager are safe for concurrent use.
//
// # Policies
//
// The [Policy] of a relayer is an [*EVMPolicy], a [*SolanaPolicy] or a
// [*StellarPolicy], and goes with its [NetworkType]. A type switch over the
// three covers all there is, and a relayer read from a Manager always has one.
//
// Every field of a policy is optional. Nil means not set, which differs from
// zero, from false and from an empty list. In a literal, new takes the value:
//
//	relayer.StellarPolicy{MaxFee: new(int32(1000))}
//
// Amounts in wei do not fit an int64. They are an [Amount], which converts to
// and from [math/big.Int] and is written in JSON with every digit.
//
// # Validation
//
// Input that breaks a rule is refused with a [*ValidationError]. It lists every
// problem at once, each with the JSON path of its field and a message for the
// person who wrote it. JSON is read strictly: unknown, misspelled and duplicate
// names are problems, null stands for left out, and an integer may be written
// in any way that has no fraction, such as 1e21.
//
// By default only the shape of a policy is checked. [WithNetworkRules] adds what
// is known of the networks: that addresses, assets, percentages and schedules
// are ones that can exist. With [WithAddressResolver] the host says which
// signers there are and what address each has.
//
// # Secrets
//
// RPC URLs often carry API keys. An [RPCURL] shows scheme, host and port and
// masks the rest where it is printed, logged or encoded as JSON; its
// conversion to string is the whole of it, for host code that makes the call.
// In a [Record] the whole URLs are in a part of their own, and the response form
// of a relayer has only the masked ones. No error text repeats a URL.
//
// # Errors
//
// Errors are matched with [errors.Is]. [ErrInvalid] comes as a
// [*ValidationError], for [errors.As]. [ErrNotFound], [ErrExists] and
// [ErrConflict] are answers; [ErrUnavailable] and [ErrOutcomeUnknown] are faults
// of the store, and only after the latter may a write have been carried out.
// An error of an [AddressResolver] is passed on wrapped.
package relayer
