// Package powerloss cuts the power under the embedded store. The disk is a FUSE
// file system that keeps what was synced and a random part of the rest: unsynced
// sectors and directory entries are dropped, kept, or torn. A child process writes
// to a store on it until the power is cut. Every acknowledged write must then be
// there, whole.
//
// It runs on Linux. A test run makes 3 cuts of each kind; more, or the same again:
//
//	go -C tests test ./powerloss -powerloss.rounds=1000 -powerloss.seed=1
package powerloss
