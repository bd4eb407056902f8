package chain

import "github.com/mr-tron/base58"

// The base58 text of 32 bytes has one digit for each leading zero byte, hence at
// least 32, and at most 44 for the largest number.
const (
	minSolanaAddress = 32
	maxSolanaAddress = 44
)

// SolanaAddressProblem returns a message if address is not the base58 text of 32 bytes, and ""
// otherwise.
func SolanaAddressProblem(address string) string {
	const message = "must be a Solana address: base58 of 32 bytes"
	// The time that base58 takes grows with the square of the length.
	if len(address) < minSolanaAddress || len(address) > maxSolanaAddress {
		return message
	}
	if key, err := base58.Decode(address); err != nil || len(key) != 32 {
		return message
	}
	return ""
}
