// Package chain checks the syntax of addresses and assets of EVM, Solana and
// Stellar networks.
package chain

import (
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/sha3"
)

const hexDigits = "0123456789abcdefABCDEF"

// EVMAddressProblem returns a message if address is not an EVM address, and ""
// otherwise. A checksum is optional, but must be correct.
func EVMAddressProblem(address string) string {
	digits, prefixed := strings.CutPrefix(address, "0x")
	if !prefixed || len(digits) != 40 || strings.Trim(digits, hexDigits) != "" {
		return "must be an address: 0x and 40 hex digits"
	}
	// An address in one case carries no checksum.
	lower := strings.ToLower(digits)
	if digits == lower || digits == strings.ToUpper(digits) {
		return ""
	}
	if digits != withEIP55Case(lower) {
		return "must have a correct EIP-55 checksum or be all lower case"
	}
	return ""
}

// withEIP55Case returns 40 lower-case hex digits with the case of their EIP-55
// checksum. EIP-55 hashes the text of the address, not its bytes. A letter is a
// capital if the digit of the hash at its position is 8 or more.
func withEIP55Case(lower string) string {
	hash := sha3.NewLegacyKeccak256()
	hash.Write([]byte(lower))
	marks := hex.EncodeToString(hash.Sum(nil))

	cased := []byte(lower)
	for i, digit := range cased {
		if digit >= 'a' && marks[i] >= '8' {
			cased[i] = digit - 'a' + 'A'
		}
	}
	return string(cased)
}
