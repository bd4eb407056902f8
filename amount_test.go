package relayer_test

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"github.com/go-relayer/relayer"
)

// bigPower returns 2^exponent+offset.
func bigPower(exponent uint, offset int64) *big.Int {
	power := new(big.Int).Lsh(big.NewInt(1), exponent)
	return power.Add(power, big.NewInt(offset))
}

// amountLadder returns amounts in ascending order, around the limits of machine words,
// floats and amounts.
func amountLadder() []*big.Int {
	ladder := []*big.Int{big.NewInt(0), big.NewInt(1)}
	for _, exponent := range []uint{32, 53, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256} {
		ladder = append(ladder, bigPower(exponent, -1))
		if exponent < 256 {
			ladder = append(ladder, bigPower(exponent, 0), bigPower(exponent, 1))
		}
	}
	return ladder
}

func TestAmount_Conversions(t *testing.T) {
	for _, wei := range amountLadder() {
		given := new(big.Int).Set(wei)
		amount := must(relayer.AmountFromBig(given))(t)
		given.SetInt64(42)
		amount.Big().SetInt64(42)
		text := wei.String()
		if amount.Big().Cmp(wei) != 0 || amount.String() != text || relayer.MustParseAmount(text) != amount {
			t.Errorf("%s is %s, big %s, and parsed as %s", text, amount, amount.Big(), relayer.MustParseAmount(text))
		}
		for _, form := range []string{text, `"` + text + `"`} {
			var decoded relayer.Amount
			if err := json.Unmarshal([]byte(form), &decoded); err != nil || decoded != amount {
				t.Errorf("%s is decoded as %v, %v", form, decoded, err)
			}
		}
		encoded := must(json.Marshal(map[string]any{"a": amount, "b": &amount, "c": []relayer.Amount{amount}}))(t)
		if want := `{"a":` + text + `,"b":` + text + `,"c":[` + text + `]}`; string(encoded) != want {
			t.Errorf("encoded %s, want %s", encoded, want)
		}
	}
	if (relayer.Amount{}) != relayer.MustParseAmount("0") || (relayer.Amount{}).String() != "0" {
		t.Error("the zero value is not 0")
	}
}

// TestAmount_CmpAndSub compares every two amounts, and subtracts them.
func TestAmount_CmpAndSub(t *testing.T) {
	ladder := amountLadder()
	for i, high := range ladder {
		for j, low := range ladder {
			a, b := must(relayer.AmountFromBig(high))(t), must(relayer.AmountFromBig(low))(t)
			if got, want := a.Cmp(b), cmp.Compare(i, j); got != want {
				t.Errorf("%s.Cmp(%s) = %d, want %d", a, b, got, want)
			}
			if (a == b) != (i == j) {
				t.Errorf("%s == %s is %t", a, b, a == b)
			}
			want, isPositive := new(big.Int).Sub(high, low), i >= j
			if !isPositive {
				want.SetInt64(0)
			}
			if got, ok := a.Sub(b); ok != isPositive || got.Big().Cmp(want) != 0 {
				t.Errorf("%s.Sub(%s) = %s, %t, want %s, %t", a, b, got, ok, want, isPositive)
			}
		}
	}
}

func TestAmountFromBig_OutOfRange(t *testing.T) {
	if amount, err := relayer.AmountFromBig(nil); err == nil {
		t.Errorf("AmountFromBig(nil) = %s", amount)
	}
	for _, wei := range []*big.Int{big.NewInt(-1), new(big.Int).Neg(bigPower(64, 0)), new(big.Int).Neg(bigPower(256, -1)), bigPower(256, 0), bigPower(256, 1), bigPower(1000, 0)} {
		if amount, err := relayer.AmountFromBig(wei); err == nil {
			t.Errorf("AmountFromBig(%s) = %s", wei, amount)
		}
		if amount, err := relayer.ParseAmount(wei.String()); err == nil {
			t.Errorf("ParseAmount(%s) = %s", wei, amount)
		}
	}
}

// These cases occur only in a decoder.
func TestAmount_UnmarshalJSON(t *testing.T) {
	value := struct{ A *relayer.Amount }{new(relayer.MustParseAmount("7"))}
	for _, wrong := range []string{`true`, `{}`, `[5]`, `["5"]`, `0.5`, `-1`, overMaxAmount, `""`, `"-1"`, `"1\u0000"`} {
		if err := json.Unmarshal([]byte(`{"A":`+wrong+`}`), &value); err == nil || *value.A != relayer.MustParseAmount("7") {
			t.Errorf("%s: %v, amount %s", wrong, err, value.A)
		}
	}
	amount := relayer.MustParseAmount("7")
	if err := json.Unmarshal([]byte("null"), &amount); err != nil || amount != relayer.MustParseAmount("7") {
		t.Errorf("null: %v, amount %s", err, amount)
	}
	if err := json.Unmarshal([]byte(`{"A":null}`), &value); err != nil || value.A != nil {
		t.Errorf("null for a pointer: %v, %v", err, value.A)
	}
	if err := json.Unmarshal([]byte(" 1.8446744073709551615e19 "), &amount); err != nil || amount != relayer.MustParseAmount("18446744073709551615") {
		t.Errorf("in exponent form: %v, %s", err, amount)
	}
}

func TestAmount_Units(t *testing.T) {
	for _, test := range []struct {
		got  relayer.Amount
		want string
	}{
		{relayer.Gwei(0), "0"},
		{relayer.Gwei(100), "1e11"},
		{relayer.Ether(20), "2e19"},
		{relayer.Gwei(math.MaxUint64), "18446744073709551615e9"},
		{relayer.Ether(math.MaxUint64), "18446744073709551615e18"},
	} {
		if want := relayer.MustParseAmount(test.want); test.got != want {
			t.Errorf("%v, want %v", test.got, want)
		}
	}
}

func TestMustParseAmount_Invalid(t *testing.T) {
	if panicOf(func() { relayer.MustParseAmount("0.5") }) == nil {
		t.Error("no panic for half a wei")
	}
}
