package strictjson

import (
	"strconv"
	"strings"
)

// maxWholeDigits is the number of digits of 2^256-1, the largest number that
// any field takes.
const maxWholeDigits = 78

// WholeNumber is the value of a JSON number that has no fraction, however it
// was written: 5, 5.0 and 50e-1 are the same.
type WholeNumber struct {
	Negative bool
	Digits   string // without leading zeros; "0" for zero
	Huge     bool   // more than maxWholeDigits digits; digits is not filled in
}

// ParseWholeNumber reads a JSON number literal. It reports false where the
// value has a fraction. Its cost is bounded by the length of the literal, not
// by the value: 1e999999999 takes no more than 1e9.
func ParseWholeNumber(literal string) (WholeNumber, bool) {
	rest, negative := strings.CutPrefix(literal, "-")
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(rest), "e")
	integer, fraction, _ := strings.Cut(mantissa, ".")

	significant := strings.TrimLeft(integer+fraction, "0")
	if significant == "" {
		return WholeNumber{Digits: "0"}, true
	}
	digits := strings.TrimRight(significant, "0")
	exponent := parseExponent(exponentText) - len(fraction) + len(significant) - len(digits)
	if exponent < 0 {
		return WholeNumber{}, false
	}
	if len(digits)+exponent > maxWholeDigits {
		return WholeNumber{Negative: negative, Huge: true}, true
	}
	return WholeNumber{Negative: negative, Digits: digits + strings.Repeat("0", exponent)}, true
}

// maxExponent is past anything a literal of a sane length could make up for
// with the digits of its mantissa.
const maxExponent = 1 << 30

func parseExponent(text string) int {
	if text == "" {
		return 0
	}
	exponent, err := strconv.Atoi(text)
	if err == nil && -maxExponent < exponent && exponent < maxExponent {
		return exponent
	}
	if strings.HasPrefix(text, "-") {
		return -maxExponent
	}
	return maxExponent
}

// The messages for numbers that are wrong.
const (
	NotWholeMessage = "must be a whole number"
	NegativeMessage = "must be 0 or more"
)

// Uint64UpTo returns the value where it is from 0 to limit, and otherwise the
// message that says what it must be.
func (n WholeNumber) Uint64UpTo(limit uint64) (value uint64, problem string) {
	if n.Negative {
		return 0, NegativeMessage
	}
	if !n.Huge {
		value, err := strconv.ParseUint(n.Digits, 10, 64)
		if err == nil && value <= limit {
			return value, ""
		}
	}
	return 0, "must be at most " + strconv.FormatUint(limit, 10)
}
