package chain

import (
	"slices"
	"testing"

	"github.com/mr-tron/base58"
)

// FuzzAccepted encodes every accepted text again from its decoded form, which
// must return the same text.
func FuzzAccepted(f *testing.F) {
	for _, seed := range slices.Concat(
		[]string{"", "native", "USDC:" + sep23Account, wrappedSOL, solanaUSDC}, validEVMAddresses, invalidEVMAddresses, sep23Valid, sep23Invalid) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if EVMAddressProblem(text) == "" && len(text) != 42 {
			t.Errorf("EVM address %q is accepted", text)
		}
		if SolanaAddressProblem(text) == "" {
			key, _ := base58.Decode(text)
			if len(key) != 32 || base58.Encode(key) != text {
				t.Errorf("Solana address %q is accepted", text)
			}
		}
		if StellarAccountProblem(text) == "" || StellarContractProblem(text) == "" {
			raw, _ := strkeyEncoding.DecodeString(text)
			if len(raw) != 35 || strkeyEncoding.EncodeToString(raw) != text {
				t.Errorf("strkey %q is accepted", text)
			}
		}
	})
}
