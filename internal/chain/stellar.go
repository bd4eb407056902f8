package chain

import "strings"

const (
	maxAssetCodeLength = 12
	assetCodeAlphabet  = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// StellarAssetProblem returns a message if asset is not "native", its synonym "XLM",
// CODE:ISSUER or a contract ID, and "" otherwise.
func StellarAssetProblem(asset string) string {
	if asset == "native" || asset == "XLM" || StellarContractProblem(asset) == "" {
		return ""
	}
	code, issuer, classic := strings.Cut(asset, ":")
	if !classic {
		return "must be native, XLM, CODE:ISSUER or a valid contract ID: C and 55 characters"
	}
	if StellarCodeProblem(code) != "" {
		return "must have a code of 1 to 12 ASCII letters and digits before the colon"
	}
	if StellarAccountProblem(issuer) != "" {
		return "must have a valid Stellar account after the colon: G and 55 characters"
	}
	return ""
}

// StellarCodeProblem returns a message if code is not 1 to 12 ASCII letters and digits, and ""
// otherwise.
func StellarCodeProblem(code string) string {
	if code == "" || len(code) > maxAssetCodeLength || strings.Trim(code, assetCodeAlphabet) != "" {
		return "must be 1 to 12 ASCII letters and digits"
	}
	return ""
}

// StellarAccountProblem returns a message if text is not the strkey of an account, and ""
// otherwise.
func StellarAccountProblem(text string) string {
	if !isStrkey(text, accountVersion) {
		return "must be a valid Stellar account: G and 55 characters"
	}
	return ""
}

// StellarContractProblem returns a message if text is not the strkey of a contract, and ""
// otherwise.
func StellarContractProblem(text string) string {
	if !isStrkey(text, contractVersion) {
		return "must be a valid Stellar contract ID: C and 55 characters"
	}
	return ""
}
