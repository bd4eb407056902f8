// Package transfer copies all relayers from one [relayer.Store] to another, such as from a
// file to PostgreSQL. See [Copy].
package transfer
