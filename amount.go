package relayer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Amount is an amount in wei: a whole number from 0 to 2^256-1. The zero value
// is 0. Amounts are compared with ==, or with [Amount.Cmp] for their order.
//
// As JSON it is a number with every digit, never rounded, never in exponent
// form, never a string.
type Amount struct {
	words [4]uint64 // most significant first
}

// maxAmountMessage says the upper bound as people write it.
const maxAmountMessage = "must be at most 2^256-1"

// NewAmount returns the amount of so many wei.
func NewAmount(wei uint64) Amount {
	return Amount{words: [4]uint64{3: wei}}
}

// AmountFromBig returns the amount of so many wei. It returns an error where
// wei is negative or more than 2^256-1.
func AmountFromBig(wei *big.Int) (Amount, error) {
	if wei.Sign() < 0 {
		return Amount{}, errors.New("relayer: amount " + strictjson.NegativeMessage)
	}
	if wei.BitLen() > 256 {
		return Amount{}, errors.New("relayer: amount " + maxAmountMessage)
	}
	var encoded [32]byte
	wei.FillBytes(encoded[:])
	var amount Amount
	for i := range amount.words {
		amount.words[i] = binary.BigEndian.Uint64(encoded[8*i:])
	}
	return amount, nil
}

// ParseAmount reads an amount written as a JSON number: 1000000000000000000 and
// 1e18 are the same. It returns an error where the text is no number, is not
// whole, is negative or is more than 2^256-1.
func ParseAmount(text string) (Amount, error) {
	if !strictjson.IsNumber(text) {
		return Amount{}, errors.New("relayer: amount must be a number")
	}
	amount, problem := amountFromLiteral(text)
	if problem != "" {
		return Amount{}, errors.New("relayer: amount " + problem)
	}
	return amount, nil
}

// amountFromLiteral reads a JSON number literal, or says what it must be.
func amountFromLiteral(literal string) (amount Amount, problem string) {
	digits, problem := strictjson.Whole(literal)
	if problem != "" {
		return Amount{}, problem
	}
	wei, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return Amount{}, strictjson.NotWholeMessage
	}
	amount, err := AmountFromBig(wei)
	if err != nil {
		return Amount{}, maxAmountMessage
	}
	return amount, ""
}

// Big returns the amount as a new big.Int.
func (a Amount) Big() *big.Int {
	var encoded [32]byte
	for i, word := range a.words {
		binary.BigEndian.PutUint64(encoded[8*i:], word)
	}
	return new(big.Int).SetBytes(encoded[:])
}

// Cmp returns -1, 0 or +1 as the amount is less than, equal to or more than
// other.
func (a Amount) Cmp(other Amount) int {
	for i := range a.words {
		if order := cmp.Compare(a.words[i], other.words[i]); order != 0 {
			return order
		}
	}
	return 0
}

// String returns every digit.
func (a Amount) String() string { return a.Big().String() }

// MarshalJSON returns a JSON number with every digit.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a JSON number as [ParseAmount] does; null leaves the
// amount as it is.
func (a *Amount) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	amount, err := ParseAmount(string(data))
	if err != nil {
		return fmt.Errorf("%w, not %.100q", err, data)
	}
	*a = amount
	return nil
}
