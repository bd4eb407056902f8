// Package tests is a separate module for tests that need additional tools, so that
// these are not dependencies of the library.
//
// Tests that need a browser, PostgreSQL or FUSE are skipped if there is none. If CI
// is set, they fail instead.
package tests
