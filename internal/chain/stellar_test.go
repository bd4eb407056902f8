package chain

import (
	"strings"
	"testing"
)

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
