package chain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
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

func TestStellarAsset(t *testing.T) {
	const (
		noAsset  = "must be native, XLM, CODE:ISSUER or a valid contract ID: C and 55 characters"
		noCode   = "must have a code of 1 to 12 ASCII letters and digits before the colon"
		noIssuer = "must have a valid Stellar account after the colon: G and 55 characters"
	)
	cases := []struct{ asset, want string }{
		{"native", ""},
		{"XLM", ""},
		{"USDC:GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN", ""},
		{"X:" + sep23Account, ""},
		{"yUSDC0123456:" + sep23Account, ""},
		{sep23Contract, ""},
		{"CAS3J7GYLGXMF6TDJBBYYSE3HQ6BBSMLNUQ34T6TZMYMW2EVH34XOWMA", ""},

		{"", noAsset},
		{"Native", noAsset},
		{"xlm", noAsset},
		{"XLM ", noAsset},
		{"USDC", noAsset},
		{sep23Account, noAsset},
		{sep23Contract[:55] + "B", noAsset},
		{sep23Contract + " ", noAsset},

		{":" + sep23Account, noCode},
		{"yUSDC01234567:" + sep23Account, noCode},
		{"US DC:" + sep23Account, noCode},
		{"USDÉ:" + sep23Account, noCode},
		{"US/C:" + sep23Account, noCode},
		{"native\x00:" + sep23Account, noCode},
		{strings.Repeat(":", 57), noCode},

		{"USDC:", noIssuer},
		{"USDC:" + sep23Contract, noIssuer},
		{"USDC:" + sep23Account[:55] + "A", noIssuer},
		{"USDC:" + sep23Account + ":", noIssuer},
		{"USDC::" + sep23Account, noIssuer},
		{"native:" + sep23Account[1:], noIssuer},
		{"XLM:", noIssuer},
	}
	for _, c := range cases {
		if got := StellarAssetProblem(c.asset); got != c.want {
			t.Errorf("%q: got %q, want %q", c.asset, got, c.want)
		}
	}
}

func TestStellarAssetCode(t *testing.T) {
	for _, code := range []string{"X", "0", "azAZ09", "ABCDEFGHIJKL"} {
		if StellarCodeProblem(code) != "" {
			t.Errorf("%q is rejected", code)
		}
	}
	// These include the neighbors of each of the three ranges of characters.
	for _, code := range []string{"", "ABCDEFGHIJKLM", "/", ":", "@", "[", "`", "{", "A B", "É", "\x00"} {
		if StellarCodeProblem(code) == "" {
			t.Errorf("%q is accepted", code)
		}
	}
}

const (
	sep23Account  = "GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ"
	sep23Contract = "CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUWDA"
)

// The valid test cases of SEP-23, of every kind.
var sep23Valid = []string{
	sep23Account,
	sep23Contract,
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ",
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK",
	"PA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAQACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6IBZGM",
	"PA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAOQCAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUAAAAFGBU",
	"LA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUPJN",
	"BAAD6DBUX6J22DMZOHIEZTEQ64CVCHEDRKWZONFEUL5Q26QD7R76RGR4TU",
}

// The invalid test cases of SEP-23.
var sep23Invalid = []string{
	"GAAAAAAAACGC6",
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUR",
	"GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZA",
	"GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUACUSI",
	"G47QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVP2I",
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLKA",
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAAV75I",
	"M47QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ",
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUK===",
	"MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUO",
	"PA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAQACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6IAAAAAAAAPM",
	"PA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAOQCAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4Z2PQ",
	"PA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAOQCAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DXFH6",
	"BAAD6DBUX6J22DMZOHIEZTEQ64CVCHEDRKWZONFEUL5Q26QD7R76RGR4TV",
	"BAAT6DBUX6J22DMZOHIEZTEQ64CVCHEDRKWZONFEUL5Q26QD7R76RGXACA",
}

func TestStrkey_Kinds(t *testing.T) {
	accounts := []string{sep23Account, "GA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQHES5"}
	contracts := []string{sep23Contract, "CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE"}
	for _, text := range accounts {
		if StellarAccountProblem(text) != "" || StellarContractProblem(text) == "" {
			t.Errorf("%s is not accepted as an account only", text)
		}
	}
	for _, text := range contracts {
		if StellarContractProblem(text) != "" || StellarAccountProblem(text) == "" {
			t.Errorf("%s is not accepted as a contract only", text)
		}
	}
	seed := "SBU2RRGLXH3E5CQHTD3ODLDF2BWDCYUSSBLLZ5GNW7JXHDIYKXZWHOKR"
	for _, text := range append(sep23Valid[2:], seed) {
		if StellarAccountProblem(text) == "" || StellarContractProblem(text) == "" {
			t.Errorf("%s is of another kind and accepted", text)
		}
	}
}

func TestStrkey_Invalid(t *testing.T) {
	invalid := append([]string{
		"",
		strings.ToLower(sep23Account),
		sep23Account[:55],
		sep23Account + "=",
		sep23Account[:55] + "=",
		sep23Account[:55] + "\n",
		sep23Account[:28] + "\r\n" + sep23Account[28:54],
		"\n" + sep23Account,
		" " + sep23Account[:55],
		strings.Repeat("=", 56),
		strings.Repeat("A", 56),
	}, sep23Invalid...)
	for _, text := range invalid {
		if StellarAccountProblem(text) == "" || StellarContractProblem(text) == "" {
			t.Errorf("%q is accepted", text)
		}
	}
}

// A CRC of 16 bits detects every change that spans at most 16 bits, and so every
// change of one character.
func TestStrkey_ChecksumCoversEveryCharacter(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	for i := range sep23Account {
		for _, c := range alphabet {
			changed := sep23Account[:i] + string(c) + sep23Account[i+1:]
			if changed != sep23Account && StellarAccountProblem(changed) == "" {
				t.Errorf("%s is accepted", changed)
			}
		}
	}
}

// The check value published for CRC-16/XMODEM.
func TestCRC16XModem_CheckValue(t *testing.T) {
	if got := crc16XModem([]byte("123456789")); got != 0x31c3 {
		t.Errorf("got %#x", got)
	}
}
