package chain

import "strings"

const (
	maxAssetCodeLength = 12
	assetCodeAlphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// StellarAssetProblem returns a message if asset is not "native", its synonym "XLM",
// CODE:ISSUER or a contract ID, and "" otherwise.
func StellarAssetProblem(asset string) string {
	if asset == "native" || asset == "XLM" || IsStellarContract(asset) {
		return ""
	}
	code, issuer, classic := strings.Cut(asset, ":")
	if !classic {
		return "must be native, XLM, CODE:ISSUER or a valid contract ID: C and 55 characters"
	}
	if !IsStellarAssetCode(code) {
		return "must have a code of 1 to 12 ASCII letters and digits before the colon"
	}
	if !IsStellarAccount(issuer) {
		return "must have a valid Stellar account after the colon: G and 55 characters"
	}
	return ""
}

// IsStellarAssetCode reports whether code is 1 to 12 ASCII letters and digits.
func IsStellarAssetCode(code string) bool {
	return code != "" && len(code) <= maxAssetCodeLength && strings.Trim(code, assetCodeAlphabet) == ""
}

// IsStellarAccount reports whether text is the strkey of an account: G and 55
// characters, checksum included.
func IsStellarAccount(text string) bool { return isStrkey(text, accountVersion) }

// IsStellarContract reports whether text is the strkey of a contract: C and 55
// characters, checksum included.
func IsStellarContract(text string) bool { return isStrkey(text, contractVersion) }
