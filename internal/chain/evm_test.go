package chain

import (
	"strings"
	"testing"
)

// The test cases of EIP-55, and addresses in one case.
var validEVMAddresses = []string{
	"0x52908400098527886E0F7030069857D2E4169EE7",
	"0x8617E340B3D01FA5F11F306F4090FD50E238070D",
	"0xde709f2102306220921060314715629080e2fb77",
	"0x27b1fdb04752bbc536007a920d24acb045561c26",
	"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
	"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
	"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
	"0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
	"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
	"0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED",
	"0x0000000000000000000000000000000000000000",
}

var invalidEVMAddresses = []string{
	"",
	"0x",
	"5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
	"0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
	"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
	"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAedd",
	"0x5aAeb6053F3E94C9b9A09g33669435E7Ef1BeAed",
	"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae\n",
	" 0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
	"vitalik.eth",
}

func TestEVMAddress_Shape(t *testing.T) {
	for _, address := range validEVMAddresses {
		if message := EVMAddressProblem(address); message != "" {
			t.Errorf("%q: %s", address, message)
		}
	}
	for _, address := range invalidEVMAddresses {
		if message := EVMAddressProblem(address); message != "must be an address: 0x and 40 hex digits" {
			t.Errorf("%q: %q", address, message)
		}
	}
}

// An EIP-55 address becomes invalid if the case of any letter changes, unless all
// its letters then have the same case.
func TestEVMAddress_ChecksumCoversEveryLetter(t *testing.T) {
	for _, address := range validEVMAddresses[4:8] {
		for i := 2; i < len(address); i++ {
			if address[i] < 'A' {
				continue
			}
			changed := address[:i] + string(address[i]^0x20) + address[i+1:]
			if message := EVMAddressProblem(changed); message != "must have a correct EIP-55 checksum or be all lower case" {
				t.Errorf("%q: %q", changed, message)
			}
		}
	}
	if upper := "0x" + strings.ToUpper(validEVMAddresses[4][2:]); EVMAddressProblem(upper) != "" {
		t.Errorf("%q is rejected", upper)
	}
}
