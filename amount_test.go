package relayer_test

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"strings"
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

// TestAmount_Conversions converts every amount to all its forms and back.
func TestAmount_Conversions(t *testing.T) {
	for _, wei := range amountLadder() {
		given := new(big.Int).Set(wei)
		amount, err := relayer.AmountFromBig(given)
		if err != nil {
			t.Fatalf("%s: %v", wei, err)
		}
		given.SetInt64(42)
		if got := amount.Big(); got.Cmp(wei) != 0 {
			t.Errorf("Big %s, want %s", got, wei)
		}
		amount.Big().SetInt64(42)
		if amount.String() != wei.String() {
			t.Errorf("String %s, want %s", amount, wei)
		}
		var decoded relayer.Amount
		if err := json.Unmarshal([]byte(`"`+wei.String()+`"`), &decoded); err != nil || decoded != amount {
			t.Errorf("decoded %v from a string, %v, want %s", decoded, err, wei)
		}
		if parsed, err := relayer.ParseAmount(wei.String()); err != nil || parsed != amount {
			t.Errorf("ParseAmount(%s): %v, %v", wei, parsed, err)
		}
		encoded, err := json.Marshal(map[string]any{"a": amount, "b": &amount, "c": []relayer.Amount{amount}})
		if want := `{"a":` + wei.String() + `,"b":` + wei.String() + `,"c":[` + wei.String() + `]}`; err != nil || string(encoded) != want {
			t.Errorf("encoded %s, %v, want %s", encoded, err, want)
		}
		if err := json.Unmarshal([]byte(wei.String()), &decoded); err != nil || decoded != amount {
			t.Errorf("decoded %v, %v, want %s", decoded, err, wei)
		}
		if relayer.MustParseAmount(wei.String()) != amount {
			t.Errorf("MustParseAmount(%s) is another amount", wei)
		}
	}
	if (relayer.Amount{}) != relayer.MustParseAmount("0") || (relayer.Amount{}).String() != "0" {
		t.Error("the zero value is not 0")
	}
}

// TestAmount_Cmp compares every two amounts.
func TestAmount_Cmp(t *testing.T) {
	ladder := amountLadder()
	for i, low := range ladder {
		for j, high := range ladder {
			a, errA := relayer.AmountFromBig(low)
			b, errB := relayer.AmountFromBig(high)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if got, want := a.Cmp(b), cmp.Compare(i, j); got != want {
				t.Errorf("%s.Cmp(%s) = %d, want %d", a, b, got, want)
			}
			if (a == b) != (i == j) {
				t.Errorf("%s == %s is %t", a, b, a == b)
			}
		}
	}
}

// TestAmount_Sub subtracts every amount from every other.
func TestAmount_Sub(t *testing.T) {
	for _, high := range amountLadder() {
		for _, low := range amountLadder() {
			a, errA := relayer.AmountFromBig(high)
			b, errB := relayer.AmountFromBig(low)
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			want, isPositive := new(big.Int).Sub(high, low), high.Cmp(low) >= 0
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
	for _, wei := range []*big.Int{big.NewInt(-1), new(big.Int).Neg(bigPower(64, 0)), new(big.Int).Neg(bigPower(256, -1)), bigPower(256, 0), bigPower(256, 1), bigPower(1000, 0)} {
		if amount, err := relayer.AmountFromBig(wei); err == nil {
			t.Errorf("AmountFromBig(%s) = %s", wei, amount)
		}
		if amount, err := relayer.ParseAmount(wei.String()); err == nil {
			t.Errorf("ParseAmount(%s) = %s", wei, amount)
		}
	}
}

func TestParseAmount_Notations(t *testing.T) {
	rightToWant := rightIntegers(maxAmount)
	rightToWant["1e18"] = "1000000000000000000"
	rightToWant["1E+21"] = "1000000000000000000000"
	rightToWant["1.5e3"] = "1500"
	rightToWant["0.000000000000000001e18"] = "1"
	rightToWant["1e77"] = "1" + strings.Repeat("0", 77)
	rightToWant["1"+strings.Repeat("0", 100)+"e-100"] = "1"
	for given, want := range rightToWant {
		if amount, err := relayer.ParseAmount(given); err != nil || amount.String() != want {
			t.Errorf("ParseAmount(%q) = %s, %v, want %s", given, amount, err, want)
		}
	}
	for _, wrong := range append(wrongIntegers(maxAmount, overMaxAmount),
		"", " ", "-", "+5", "05", "00", ".5", "5.", "5e", "5e+", "0x10", "1_000", "1,000", "NaN", "Infinity", "null", "nullx", "５", "5 ", " 5", "5\n", "5 5", "5,", "5}", "1e1.5", "--5", "5-",
		"1.15792089237316195423570985008687907853269984665640564039457584007913129639936e77") {
		if amount, err := relayer.ParseAmount(wrong); err == nil || amount != (relayer.Amount{}) {
			t.Errorf("ParseAmount(%q) = %s, %v", wrong, amount, err)
		}
	}
}

// These cases occur only in a decoder.
func TestAmount_UnmarshalJSON(t *testing.T) {
	value := struct{ A *relayer.Amount }{new(relayer.MustParseAmount("7"))}
	for _, wrong := range append([]string{`true`, `{}`, `[5]`, `["5"]`, `0.5`, `-1`, overMaxAmount}, wrongDigits...) {
		if err := json.Unmarshal([]byte(`{"A":`+wrong+`}`), &value); err == nil || *value.A != relayer.MustParseAmount("7") {
			t.Errorf("%s: %v, amount %s", wrong, err, value.A)
		}
	}
	for right, want := range rightAmounts() {
		var amount relayer.Amount
		if err := json.Unmarshal([]byte(right), &amount); err != nil || amount.String() != want {
			t.Errorf("%s: %v, amount %s, want %s", right, err, amount, want)
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
	defer func() {
		if recover() == nil {
			t.Error("no panic for half a wei")
		}
	}()
	relayer.MustParseAmount("0.5")
}
