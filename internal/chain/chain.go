// Package chain checks the syntax of addresses and assets of EVM, Solana and Stellar networks.
package chain

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/mr-tron/base58"
	"golang.org/x/crypto/sha3"
)

var (
	evmAddress = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)
	assetCode  = regexp.MustCompile(`^[0-9A-Za-z]{1,12}$`)
)

func problemIf(isInvalid bool, problem string) string {
	if isInvalid {
		return problem
	}
	return ""
}

// EVMAddressProblem returns a message if address is not an EVM address, and ""
// otherwise. A checksum is optional, but must be correct.
func EVMAddressProblem(address string) string {
	if !evmAddress.MatchString(address) {
		return "must be an address: 0x and 40 hex digits"
	}
	digits := address[2:]
	lower := strings.ToLower(digits)
	isMixed := digits != lower && digits != strings.ToUpper(digits) // the others carry no checksum
	return problemIf(isMixed && digits != withEIP55Case(lower), "must have a correct EIP-55 checksum or be all lower case")
}

// withEIP55Case returns 40 lower-case hex digits with the case of their EIP-55
// checksum. EIP-55 hashes the text of the address, not its bytes. A letter is a
// capital if the digit of the hash at its position is 8 or more.
func withEIP55Case(lower string) string {
	hash := sha3.NewLegacyKeccak256()
	hash.Write([]byte(lower))
	marks := hex.EncodeToString(hash.Sum(nil))

	cased := []byte(lower)
	for i, digit := range cased {
		if digit >= 'a' && marks[i] >= '8' {
			cased[i] = digit - 'a' + 'A'
		}
	}
	return string(cased)
}

// SolanaAddressProblem returns a message if address is not the base58 text of 32 bytes, and ""
// otherwise. Such a text has 32 to 44 characters.
func SolanaAddressProblem(address string) string {
	var key []byte
	if len(address) >= 32 && len(address) <= 44 {
		key, _ = base58.Decode(address) // in a time that grows with the square of the length
	}
	return problemIf(len(key) != 32, "must be a Solana address: base58 of 32 bytes")
}

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
	return problemIf(StellarAccountProblem(issuer) != "", "must have a valid Stellar account after the colon: G and 55 characters")
}

// StellarCodeProblem returns a message if code is not 1 to 12 ASCII letters and digits, and ""
// otherwise.
func StellarCodeProblem(code string) string {
	return problemIf(!assetCode.MatchString(code), "must be 1 to 12 ASCII letters and digits")
}

// StellarAccountProblem returns a message if text is not the strkey of an account, and ""
// otherwise.
func StellarAccountProblem(text string) string {
	return problemIf(!isStrkey(text, accountVersion), "must be a valid Stellar account: G and 55 characters")
}

// StellarContractProblem returns a message if text is not the strkey of a contract, and ""
// otherwise.
func StellarContractProblem(text string) string {
	return problemIf(!isStrkey(text, contractVersion), "must be a valid Stellar contract ID: C and 55 characters")
}

// The version bytes of SEP-23: the kind in the upper five bits, the algorithm,
// which is always 0, in the lower three.
const (
	accountVersion  = 6 << 3
	contractVersion = 2 << 3
)

var strkeyEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// isStrkey reports whether text is a strkey of the version: its byte, 32 bytes and a checksum of
// two. They fill 56 base32 characters exactly, so every strkey has only one text. The length is
// checked after decoding as well, because encoding/base32 skips line breaks.
func isStrkey(text string, version byte) bool {
	if len(text) != 56 {
		return false
	}
	raw, err := strkeyEncoding.DecodeString(text)
	return err == nil && len(raw) == 35 && raw[0] == version && binary.LittleEndian.Uint16(raw[33:]) == crc16XModem(raw[:33])
}

func crc16XModem(data []byte) uint16 {
	var crc uint16
	for _, b := range data {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021 // the polynomial
			}
		}
	}
	return crc
}
