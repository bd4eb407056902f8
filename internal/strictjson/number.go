package strictjson

import (
	"strconv"
	"strings"
)

// maxDigits is the number of digits of 2^256-1, the largest number of any field.
const maxDigits = 78

// The messages for wrong numbers.
const (
	NotWholeMessage = "must be a whole number"
	NegativeMessage = "must be 0 or more"
)

// Whole returns the decimal digits of a JSON number literal, without leading
// zeros, or a message if its value has a fraction or is negative. Only the value
// counts: 5, 5.0 and 50e-1 are the same. A value of more than 78 digits is
// returned as 79 nines, which exceeds every limit. The cost is bounded by the
// length of the literal, not by its value: 1e999999999 is as cheap as 1e9.
func Whole(literal string) (digits, problem string) {
	rest, negative := strings.CutPrefix(literal, "-")
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(rest), "e")
	integer, fraction, _ := strings.Cut(mantissa, ".")

	significant := strings.TrimLeft(integer+fraction, "0")
	if significant == "" {
		return "0", ""
	}
	digits = strings.TrimRight(significant, "0")
	exponent := parseExponent(exponentText) - len(fraction) + len(significant) - len(digits)
	switch {
	case exponent < 0:
		return "", NotWholeMessage
	case negative:
		return "", NegativeMessage
	case len(digits)+exponent > maxDigits:
		return strings.Repeat("9", maxDigits+1), ""
	}
	return digits + strings.Repeat("0", exponent), ""
}

// maxExponent exceeds any exponent that the mantissa of a literal of reasonable
// length could compensate.
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

// hasSmallExponent reports whether a 64-bit float may need the exponent of a literal. The exponent of
// true, false and null is 0, because nothing follows their last e.
func hasSmallExponent(literal string) bool {
	_, exponent, _ := strings.Cut(strings.ToLower(literal), "e")
	size := parseExponent(exponent)
	return -maxFreeExponent <= size && size <= maxFreeExponent
}

// unsigned returns the value of a literal from 0 to limit, or a message.
func unsigned(literal string, limit uint64) (value uint64, problem string) {
	if value, err := strconv.ParseUint(literal, 10, 64); err == nil && value <= limit {
		return value, "" // most numbers
	}
	digits, problem := Whole(literal)
	if problem != "" {
		return 0, problem
	}
	value, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || value > limit {
		return 0, "must be at most " + strconv.FormatUint(limit, 10)
	}
	return value, ""
}
