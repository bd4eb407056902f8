package chain

import "github.com/mr-tron/base58"

// The base58 text of 32 bytes has one digit for each leading zero byte, hence at
// least 32, and at most 44 for the largest number.
const (
	minSolanaAddress = 32
	maxSolanaAddress = 44
)

// IsSolanaAddress reports whether address is the base58 text of 32 bytes.
func IsSolanaAddress(address string) bool {
	// The time that base58 takes grows with the square of the length.
	if len(address) < minSolanaAddress || len(address) > maxSolanaAddress {
		return false
	}
	key, err := base58.Decode(address)
	return err == nil && len(key) == 32
}
