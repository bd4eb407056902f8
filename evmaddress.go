package relayer

import (
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/sha3"
)

const hexDigits = "0123456789abcdefABCDEF"

// evmAddressProblem says what is wrong with an address, or "".
func evmAddressProblem(address string) string {
	digits, prefixed := strings.CutPrefix(address, "0x")
	if !prefixed || len(digits) != 40 || strings.Trim(digits, hexDigits) != "" {
		return "must be an address: 0x and 40 hex digits"
	}
	// An address in one case carries no checksum that could be wrong.
	lower := strings.ToLower(digits)
	if digits == lower || digits == strings.ToUpper(digits) {
		return ""
	}
	if digits != withEIP55Case(lower) {
		return "must have a right EIP-55 checksum or be all lower case"
	}
	return ""
}

// withEIP55Case takes 40 hex digits in lower case. EIP-55 hashes the text of
// the address, not its bytes, and a letter is a capital where the hash's digit
// at the same place is 8 or more.
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
