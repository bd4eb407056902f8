package chain

import "github.com/mr-tron/base58"

// The base58 text of 32 bytes: one digit for each leading zero byte, so 32 of
// them at least, and 44 for the largest number.
const (
	minSolanaAddress = 32
	maxSolanaAddress = 44
)

// IsSolanaAddress looks at the length first: the time base58 takes grows with
// its square.
func IsSolanaAddress(address string) bool {
	if len(address) < minSolanaAddress || len(address) > maxSolanaAddress {
		return false
	}
	key, err := base58.Decode(address)
	return err == nil && len(key) == 32
}
