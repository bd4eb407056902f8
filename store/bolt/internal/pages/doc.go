// Package pages reads and verifies the pages of a bbolt file. It compares every
// offset, length and page ID with the size of the page and of the file, and visits
// no page of a tree twice. Damage therefore ends in an error within a bounded time.
// The engine itself follows a damaged page without limit.
//
// All functions read the mapped file and copy nothing. They can fault if the file is
// truncated or the disk fails. The caller turns such a fault into an error with
// [runtime/debug.SetPanicOnFault].
package pages
