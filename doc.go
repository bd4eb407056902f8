// Package relayer is an embeddable registry of blockchain relayers.
//
// A relayer is a configured entity that relays transactions. It has a name, one signer and one
// network, optional RPC endpoints, a pause flag, and a policy that restricts what it does. The
// registry stores this configuration. It neither signs nor sends transactions: the relaying
// engine of the host does.
//
// # Manager and Store
//
// A [Manager] is the registry. It validates input, sets defaults, and keeps relayers in a
// [Store]. The host application opens the store, passes it to [New], and closes it. The stores of
// this repository are store/memory, store/bolt (one durable file), and store/postgres (for
// several instances that share one registry). A host with another storage engine implements the
// methods of [Store] and tests them with storetest.Run; package store/storeutil has parts of a
// store. The package store/transfer copies all relayers from one store to another.
//
// [Manager.Create] and [Documents.Create] add a relayer: from a [CreateRequest] in Go, or from
// JSON. Both apply the same rules, but in JSON paused is required, and an empty id or
// notification_id is refused. [Manager.Get], [Manager.List] and [Manager.All] read. Every store
// lists relayers in creation order, oldest first, so pages do not shift when relayers are added.
//
// [Manager.Update], [Manager.Patch] and [Manager.Delete] change and remove a relayer.
// [Manager.Pause] is the switch of the operator, and [Manager.Disable] is the switch of the
// host application; they are independent. Writes take options: [IfRevision] makes a change
// conditional, and [DryRun] only checks it.
//
// [Manager.PauseAll] pauses a selection in an emergency. [Manager.ResumeAll] with [PausedBy]
// resumes exactly the relayers that PauseAll paused. [Manager.Watch] returns the changes as they
// are made, including the changes of other writers to the same store, and [Manager.History] returns
// earlier changes.
//
// A [Selector] selects relayers by their fields and [Relayer.Labels]. [Manager.Within] returns a
// view of a selection, so a host can give each team its own relayers. [WithAdmission] lets the
// host refuse writes, and [WithObserver] is for traces, metrics and an audit log. [Registry] is
// the interface of a Manager and of the client of package client.
//
// # Shared memory
//
// A Manager neither modifies nor keeps what a caller gives it: requests, patches and options
// can be changed after the call. What it returns belongs to the caller, and a change of it has
// no effect on what is stored. The exceptions are a [Document], whose JSON is shared with the
// store, and what hooks get: an [Operation] and its slices are shared by all observers and must
// not be modified. A [Store] and its callers share the bytes, terms and text of a [Record],
// which are read-only.
//
// # Policies
//
// The [Policy] of a relayer is an [*EVMPolicy], a [*SolanaPolicy] or a [*StellarPolicy],
// depending on its [NetworkType]. It is an [*UnknownPolicy] if a newer version stored a
// relayer of a network type that this version does not have. A relayer that [Manager.Get] returns
// always has a policy.
//
// Instances of a host can be upgraded one after the other: a change keeps the members that a
// newer version added to a stored relayer. A change drops them if it removes their object,
// changes their list, or replaces the [DisabledReason]. A new policy that an Update assigns keeps
// them. If a known field of a policy has a newer value, such as another kind of token, only
// pause, resume, disable, enable, delete and a replacement of the value succeed.
//
// Every field of a policy is optional: nil means not set (see [Policy]). In a literal, new takes
// the value:
//
//	&relayer.EVMPolicy{MinBalance: new(relayer.Ether(20))}
//
// Amounts in wei can exceed an int64. They have the type [Amount], which converts to and from
// [math/big.Int] and is encoded in JSON with every digit.
//
// # Validation
//
// Invalid input is rejected with a [*ValidationError]. It lists the problems of all fields at
// once, each with the JSON path of the field and a message for the sender; some rules, such as
// size, are checked last. JSON is decoded strictly: unknown, misspelled and duplicate names are
// problems, and null means not set, except as a label, header or list element. Outside of
// settings, an integer may be written in any notation that [ParseAmount] accepts, such as 1e21.
//
// By default only the shape of a policy is checked. [WithNetworkRules] also checks that
// addresses, assets, percentages and schedules are possible on their network. With
// [WithAddressResolver] the host determines which signers exist, and their addresses.
//
// # Secrets
//
// RPC URLs often contain API keys. An [RPCURL] that is printed, logged or encoded as JSON
// shows only scheme, host and port. [RPCURL.Unmasked] is the full URL, for host code that
// connects to it. An RPC URL with *** for a hidden part is never stored in place of the full one. A
// [Record] has the full URLs in a separate part; the response form of a relayer has only the masked
// ones. URLs in the errors of hooks, and in a [DisabledReason], are masked. The error of the
// function passed to [Manager.Update] is not, and an error can quote an ID or an unknown member
// name that the caller sent. Package store/sealed encrypts the full URLs in the store.
//
// # Errors
//
// Errors name the operation and the ID, and are matched with [errors.Is]. An error of this
// package that matches [ErrInvalid] is a [*ValidationError]: use [errors.As]. [ErrUnavailable] is
// a failure of the store or the keyring. A write that returns [ErrOutcomeUnknown] may have taken
// effect, and so may a pause, resume, disable or enable that returns [ErrCorrupt]. Any other
// error means that the write had no effect.
package relayer
