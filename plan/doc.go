// Package plan applies a configuration file to a registry of relayers.
//
// The file lists all desired relayers, each with its ID:
//
//	{"relayers": [
//		{"id": "sepolia-1", "name": "Sepolia", "network": "sepolia", "network_type": "evm",
//		 "paused": false, "signer_id": "local-signer", "policies": {"min_balance": 0}}
//	]}
//
// The config.json of OpenZeppelin Relayer is such a file: its other sections are ignored,
// and an RPC endpoint may be a plain string, the URL.
//
// [Parse] reads the file, [New] compares it with a registry, [Plan.String] shows the
// differences, and [Plan.Apply] writes them. [Export] writes the file of a registry. The
// registry is a [relayer.Manager], the client of a server, or a wrapper of one.
//
// # What the file determines
//
// The file determines every field that a create can set, and every label. An optional field or a
// label that it omits is removed. For Solana, an omitted fee_payment_strategy means user; an
// omitted weight of an RPC endpoint means 100. The fields address, system_disabled and
// disabled_reason are kept. So are relayers that the file does not list, unless [Options] prune
// them. A plan shows which paused relayers it would resume. [Options.KeepPaused] keeps them
// paused.
//
// A relayer cannot change its network, network_type or signer_id. If they differ, the registry
// rejects the update, and the entry is [Blocked]: delete the relayer, and apply the file again.
//
// # RPC URLs
//
// Only the registry compares full RPC URLs: a plan sends them in a dry run, one for each relayer
// with full URLs, and shows custom_rpc_urls as changed if a hidden part differs. If the registry
// does not permit such an update, as to a token that may only read, [New] returns an error.
//
// A file of [Export] has masked URLs, in which *** replaces each hidden part, except user
// information that a server has hidden. Such URLs keep the stored ones if the whole list is as
// the registry shows it. Otherwise the registry rejects them, the entry is [Blocked], and the
// file needs the full URLs. An entry without *** is also [Blocked] if a URL without a path is the
// stored one without user information: the registry takes it for masked. Write it in full, or
// first apply a file without the endpoint.
//
// # Concurrent changes
//
// Updates and deletes are conditional on the revision that the plan has seen. If another writer
// has changed the relayer since, the change fails with [relayer.ErrConflict] and the relayer
// stays as it is. If the registry has no revisions, updates and deletes are [Blocked]. To resume
// after any failure or interruption, make a new plan and apply it.
package plan
