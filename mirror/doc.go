// Package mirror keeps a view of relayers in memory and updates it, for programs that ask on
// every transaction whether a relayer is paused and what its policy allows.
//
// [Open] reads all relayers of a registry (a Manager or a client), and then applies its changes
// in order. After any error of the feed it reads all relayers again, into a new view that
// replaces the old one. So the view is right even after the registry was restored from a backup
// or replaced by another. During the read the view stays as it was: it is at most as old as the
// time since [Mirror.CaughtUp].
//
// # What a program may conclude
//
//	observation                        conclusion
//	CaughtUp is T                      every change that was acknowledged before T is in
//	                                   the view, whatever delayed it; changes since then may
//	                                   be in it
//	time.Since(CaughtUp) is small      the view is at most this old, even after the machine
//	                                   was suspended or its clock was set; a registry
//	                                   without changes confirms it every 5 seconds
//	time.Since(CaughtUp) grows         the registry is unreachable, refuses the token, or is
//	                                   being read again; changes since then are unknown
//	Get returns a relayer              it had this state at CaughtUp or later
//	Get returns ErrNotFound            there was no such relayer, or the selector did not
//	                                   select it, at CaughtUp or later
//	a relayer is not paused            this is not enough to relay: compare the age too
//	CaughtUp before Get                the state is not older than the time; in the other order
//	                                   it may be, because the view may change in between
//	two calls of Get                   the two states may never have been current at one
//	                                   moment: use All or List
//	Revision of a relayer              a lower one than before can be newer: a registry
//	                                   that was restored has lower ones
//	Changes has yielded a change       the view had it then, and may have later ones
//	Changes yields nothing             something may have changed all the same: see CaughtUp
//
// Relayers of a view are shared by all callers and must not be modified. Their RPC URLs are as
// the source returns them: in full from a Manager whose store does not seal, and from a client
// with client.WithFullRPCURLs; otherwise masked. URLs that the source cannot open are masked
// ([relayer.RPCConfig.IsMasked] is true), and RPCURLs of the source returns why. With
// store/postgres, URLs are also masked in a change that a later one has replaced, until that
// later change arrives.
package mirror
