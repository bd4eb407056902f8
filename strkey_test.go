package relayer

import (
	"strings"
	"testing"
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

func TestStrkeyKinds(t *testing.T) {
	accounts := []string{sep23Account, "GA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQHES5"}
	contracts := []string{sep23Contract, "CA3D5KRYM6CB7OWQ6TWYRR3Z4T7GNZLKERYNZGGA5SOAOPIFY6YQGAXE"}
	for _, text := range accounts {
		if !isStrkey(text, strkeyAccount) || isStrkey(text, strkeyContract) {
			t.Errorf("%s is not taken as an account alone", text)
		}
	}
	for _, text := range contracts {
		if !isStrkey(text, strkeyContract) || isStrkey(text, strkeyAccount) {
			t.Errorf("%s is not taken as a contract alone", text)
		}
	}
	seed := "SBU2RRGLXH3E5CQHTD3ODLDF2BWDCYUSSBLLZ5GNW7JXHDIYKXZWHOKR"
	for _, text := range append(sep23Valid[2:], seed) {
		if isStrkey(text, strkeyAccount) || isStrkey(text, strkeyContract) {
			t.Errorf("%s is of another kind, and taken", text)
		}
	}
}

func TestStrkeyRefusesInvalid(t *testing.T) {
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
		if isStrkey(text, strkeyAccount) || isStrkey(text, strkeyContract) {
			t.Errorf("%q is taken", text)
		}
	}
}

// A CRC of 16 bits sees every change that spans no more than 16 bits, and so
// every change of one character.
func TestStrkeyChecksumCoversEveryCharacter(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	for i := range sep23Account {
		for _, c := range alphabet {
			changed := sep23Account[:i] + string(c) + sep23Account[i+1:]
			if changed != sep23Account && isStrkey(changed, strkeyAccount) {
				t.Errorf("%s is taken", changed)
			}
		}
	}
}

// The check value that catalogues of CRCs give for XModem.
func TestCRC16XModem(t *testing.T) {
	if got := crc16XModem([]byte("123456789")); got != 0x31c3 {
		t.Errorf("got %#x", got)
	}
}
