package chain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
)

const (
	wrappedSOL = "So11111111111111111111111111111111111111112"
	solanaUSDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v"
)

func TestSolanaAddress(t *testing.T) {
	ones := func(count int) string { return strings.Repeat("1", count) }
	cases := []struct {
		name    string
		address string
		want    bool
	}{
		{"wrapped SOL", wrappedSOL, true},
		{"USDC", solanaUSDC, true},
		{"token program", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", true},
		{"system program: 32 zero bytes", ones(32), true},
		{"31 zero bytes", ones(31), false},
		{"33 zero bytes", ones(33), false},
		{"largest number of 32 bytes", "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG", true},
		{"one more", "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH", false},
		{"31 bytes in a length that could hold 32", base58.Encode(bytes.Repeat([]byte{0xff}, 31)), false},
		{"45 digits", "1" + solanaUSDC + "1", false},
		{"empty", "", false},
		{"digit 0", "0" + wrappedSOL[1:], false},
		{"digit O", "O" + wrappedSOL[1:], false},
		{"digit I", "I" + wrappedSOL[1:], false},
		{"digit l", "l" + wrappedSOL[1:], false},
		{"line break", wrappedSOL + "\n", false},
		{"outside ASCII", "é" + wrappedSOL[2:], false},
		{"hex", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := SolanaAddressProblem(c.address) == ""; got != c.want {
				t.Errorf("%q: got %v", c.address, got)
			}
		})
	}
}
