// Package pages reads, verifies and writes the pages of a bbolt file. It compares every
// offset, length and page ID with the size of the page and of the file, and visits no
// page of a tree twice. Damage therefore ends in an error within a bounded time. The
// engine itself follows a damaged page without limit.
//
// Pages are read with ReadAt and not from a mapping, so that a truncated file and a
// failing disk are errors and not faults.
package pages
