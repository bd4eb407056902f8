package relayer

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Amount is an amount in wei: a whole number from 0 to 2^256-1. The zero value is 0.
// Amounts are comparable with == and ordered by [Amount.Cmp].
//
// It encodes as a JSON number with every digit, without rounding and without an exponent. It
// decodes from a JSON number or from a string of decimal digits. In package fmt, %v and %s
// print the digits, and %d does not.
type Amount struct {
	words [4]uint64 // most significant first
}

const (
	maxAmountMessage = "must be at most 2^256-1"
	digitsMessage    = "must be a number or a string of decimal digits"
)

// Gwei returns an amount of n gwei, which are 1e9 wei each.
func Gwei(n uint64) Amount { return scaledAmount(n, 1e9) }

// Ether returns an amount of n ether, which are 1e18 wei each.
func Ether(n uint64) Amount { return scaledAmount(n, 1e18) }

// scaledAmount never overflows: the product of two 64-bit numbers has 128 bits.
func scaledAmount(n, wei uint64) Amount {
	high, low := bits.Mul64(n, wei)
	return Amount{words: [4]uint64{2: high, 3: low}}
}

// AmountFromBig returns an amount of wei. It returns an error if wei is nil, negative or more
// than 2^256-1.
func AmountFromBig(wei *big.Int) (Amount, error) {
	if wei == nil || wei.Sign() < 0 {
		return Amount{}, amountError(strictjson.NegativeMessage)
	}
	if wei.BitLen() > 256 {
		return Amount{}, amountError(maxAmountMessage)
	}
	var encoded [32]byte
	wei.FillBytes(encoded[:])
	var amount Amount
	for i := range amount.words {
		amount.words[i] = binary.BigEndian.Uint64(encoded[8*i:])
	}
	return amount, nil
}

func amountError(problem string) error { return errorIf(problem != "", "amount "+problem) }

// ParseAmount parses an amount in the notation of JSON numbers: 1000000000000000000 and 1e18 are
// the same. It returns an error if the value has a fraction, is negative or is more than 2^256-1,
// if the text is not a number, or if it has more than 400 characters or an exponent beyond ±400.
func ParseAmount(text string) (Amount, error) {
	amount, problem := Amount{}, "must be a number"
	if strictjson.IsNumber(text) {
		amount, problem = amountFromLiteral(text)
	}
	return amount, amountError(problem)
}

// MustParseAmount is [ParseAmount] for a constant text, such as
// MustParseAmount("0.5e18"). It panics if the text is not an amount.
func MustParseAmount(text string) Amount {
	amount, err := ParseAmount(text)
	if err != nil {
		panic(fmt.Sprintf("%v: %q", err, text))
	}
	return amount
}

// amountFromLiteral parses a JSON number literal, which may have leading zeros here, or
// returns what it must be.
func amountFromLiteral(literal string) (amount Amount, problem string) {
	if wei, err := strconv.ParseUint(literal, 10, 64); err == nil {
		return Amount{words: [4]uint64{3: wei}}, "" // most amounts, without allocating a big.Int
	}
	wei, problem := strictjson.Whole(literal)
	if problem != "" {
		return Amount{}, problem
	}
	amount, err := AmountFromBig(wei)
	return amount, problemIf(err != nil, maxAmountMessage)
}

// amountFromJSON parses a JSON number, or a JSON string of decimal digits, which may begin with
// zeros, or returns what it must be.
func amountFromJSON(data []byte) (amount Amount, problem string) {
	text := string(data)
	if !strictjson.IsNumber(text) && (json.Unmarshal(data, &text) != nil || text == "" || strings.Trim(text, "0123456789") != "") {
		return Amount{}, digitsMessage
	}
	return amountFromLiteral(text)
}

// Big returns the amount as a new big.Int.
func (a Amount) Big() *big.Int {
	var encoded [32]byte
	for i, word := range a.words {
		binary.BigEndian.PutUint64(encoded[8*i:], word)
	}
	return new(big.Int).SetBytes(encoded[:])
}

// Cmp returns -1, 0 or +1 if the amount is less than, equal to or more than other.
func (a Amount) Cmp(other Amount) int { return slices.Compare(a.words[:], other.words[:]) }

// Sub returns the amount minus other, or 0 and false if other is more than the amount.
func (a Amount) Sub(other Amount) (difference Amount, ok bool) {
	var borrow uint64
	for i := len(a.words) - 1; i >= 0; i-- {
		difference.words[i], borrow = bits.Sub64(a.words[i], other.words[i], borrow)
	}
	if borrow != 0 {
		return Amount{}, false
	}
	return difference, true
}

// String returns the decimal digits.
func (a Amount) String() string {
	if a.words[0]|a.words[1]|a.words[2] == 0 {
		return strconv.FormatUint(a.words[3], 10) // most amounts, without allocating a big.Int
	}
	return a.Big().String()
}

// MarshalJSON returns a JSON number with every digit.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON parses a JSON number like [ParseAmount], or a JSON string of decimal
// digits; null leaves the amount unchanged.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	amount, problem := amountFromJSON(data)
	if problem != "" {
		return fmt.Errorf("%w, not %.100q", amountError(problem), data)
	}
	*a = amount
	return nil
}
