// Package chain checks the syntax of addresses and assets of EVM, Solana and
// Stellar networks.
package chain
