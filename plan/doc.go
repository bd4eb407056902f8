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
// registry is a [relayer.Manager], the client of a server, or a wrapper of one. Entries,
// results and plans have a JSON form, for a front end.
//
// # What the file determines
//
// The file determines every field that a client can set, and every label. An optional
// field or a label that it omits is removed. For Solana, an omitted fee_payment_strategy
// means user; an omitted weight of an RPC endpoint means 100. The fields address,
// system_disabled and disabled_reason are kept. So are relayers that the file does not list,
// unless [Options] prune them. A plan shows if it would resume a relayer that an operator has
// paused; [Options] can keep paused as it is.
//
// A relayer cannot change its network, network_type or signer_id. If they differ, the
// entry is [Blocked]: delete the relayer, and apply the file again.
//
// # RPC URLs
//
// A plan compares the full RPC URLs, if RPCURLs of the registry returns them. With the wrong
// keys for sealed URLs it returns an error, and so does [New]. A Manager without keys, and a
// client, whose method MasksRPCURLs() bool returns true, have masked URLs. These are compared
// by their visible part, and the entry has MaskedURLs set. [Options] can send them anyway.
//
// A file of [Export] has masked URLs: /*** replaces a path, and ***@ user information. On
// a Manager, a masked URL keeps the stored one with this mask, at any position. If several
// endpoints have the same mask, the file must list them all, in their order and with their
// weights; those that it has in full do not count. On a registry that masks URLs, a masked
// URL must match the stored one at its position, and no endpoint of the relayer can
// change. Otherwise the entry is [Blocked], and the file needs the full URL.
//
// A URL without a mark is a full one. To remove the user information of a stored URL, apply
// a file without the endpoint first: a Manager rejects a URL that is the masked form of
// the stored one, and the entry is [Blocked]. A server does not show user information. An
// update that would remove it fails with an error that matches [relayer.ErrInvalid].
//
// # Concurrent changes
//
// Every change is conditional on the revision that the plan has seen. If another writer
// has changed the relayer since, the change fails with [relayer.ErrConflict] and the
// relayer stays as it is. If the registry has no revisions, updates and deletes are
// [Blocked]. To resume after any failure or interruption, make a new plan and apply it.
package plan
