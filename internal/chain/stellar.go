package chain

import "strings"

const maxStellarAssetCode = 12

// StellarAssetProblem says what is wrong with the name of an asset, or "".
func StellarAssetProblem(asset string) string {
	if asset == "native" {
		return ""
	}
	code, issuer, classic := strings.Cut(asset, ":")
	if !classic {
		return contractAssetProblem(asset)
	}
	if !IsStellarAssetCode(code) {
		return "must have a code of 1 to 12 ASCII letters and digits before the colon"
	}
	if !isStrkey(issuer, accountVersion) {
		return "must have a valid Stellar account after the colon: G and 55 characters"
	}
	return ""
}

func contractAssetProblem(asset string) string {
	if !isStrkey(asset, contractVersion) {
		return "must be native, CODE:ISSUER or a valid contract id: C and 55 characters"
	}
	return ""
}

func IsStellarAssetCode(code string) bool {
	if code == "" || len(code) > maxStellarAssetCode {
		return false
	}
	for _, c := range []byte(code) {
		if !isASCIILetterOrDigit(c) {
			return false
		}
	}
	return true
}

func isASCIILetterOrDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// IsStellarAccount reports whether text is the strkey of an account.
func IsStellarAccount(text string) bool { return isStrkey(text, accountVersion) }

// IsStellarContract reports whether text is the strkey of a contract.
func IsStellarContract(text string) bool { return isStrkey(text, contractVersion) }
