package relayer_test

import (
	"fmt"
	"strings"
	"testing"
)

// wrongValues are JSON values that a field of the kind must refuse.
var wrongValues = map[kind][]string{
	text:         {`5`, `0.5`, `true`, `[]`, `["x"]`, `{}`},
	nonEmptyText: {`5`, `true`, `[]`, `{}`, `""`},
	choice:       {`5`, `true`, `[]`, `{}`, `"other"`, `""`},
	identifier:   {`5`, `true`, `[]`, `{}`, `""`, `"a b"`},
	urlText:      {`5`, `true`, `[]`, `{}`, `""`, `"rpc.example"`},
	boolean:      {`"true"`, `"false"`, `0`, `1`, `[]`, `{}`},
	list:         {`"x"`, `5`, `true`, `{}`, `{"0":"x"}`},
	object:       {`"x"`, `5`, `true`, `[]`, `[{}]`},
	union:        {`5`, `true`, `[]`, `"other"`, `{}`},
	number:       {`"1"`, `true`, `[]`, `{}`, `1e999`, `-1e999`},
	weight:       {`"1"`, `true`, `[]`, `{}`, `1e999`, `-1`, `-1e-9`, `100.0000001`, `101`},
	uint8Number:  wrongIntegers("255", "256"),
	uint32Number: wrongIntegers("4294967295", "4294967296"),
	uint64Number: wrongIntegers("18446744073709551615", "18446744073709551616"),
	int32Number:  wrongIntegers("2147483647", "2147483648"),
	int64Number:  wrongIntegers("9223372036854775807", "9223372036854775808"),
	amount:       wrongIntegers(maxAmount, overMaxAmount),
}

const (
	maxAmount     = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	overMaxAmount = "115792089237316195423570985008687907853269984665640564039457584007913129639936"
)

func wrongIntegers(most, tooMuch string) []string {
	return []string{
		`"5"`, `true`, `[]`, `{}`,
		`-1`, `-1.0`, `-1e77`, `-` + most,
		`0.5`, `1e-1`, `-0.5`, most + `.5`, `123e-2`, `1e-999999999`, `1e-99999999999999999999`,
		tooMuch, tooMuch + `.0`, `1` + most, `1e78`, `1e999999999`, `1e99999999999999999999`,
	}
}

// rightIntegers maps how an integer may be written to its value.
func rightIntegers(most string) map[string]string {
	return map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "0.0": "0", "0e999999999": "0", "-0E-99999999999999999999": "0", "0.000e7": "0",
		"5": "5", "5.0": "5", "50e-1": "5", "5e0": "5", "0.5e1": "5", "0.05E+2": "5", "500000e-5": "5", "5.000000000000000000000": "5",
		most: most, most + ".0": most, most + "e0": most, most + "00e-2": most,
	}
}

// rightValues maps what a field of the kind takes to what the document shows.
var rightValues = map[kind]map[string]string{
	uint8Number:  rightIntegers("255"),
	uint32Number: rightIntegers("4294967295"),
	uint64Number: rightIntegers("18446744073709551615"),
	int32Number:  rightIntegers("2147483647"),
	int64Number:  rightIntegers("9223372036854775807"),
	amount:       rightIntegers(maxAmount),
	number:       {"0": "0", "-2.5": "-2.5", "1e21": "1e+21", "0.1": "0.1", "1.7976931348623157e308": "1.7976931348623157e+308", "1e-999": "0", "50e-1": "5"},
	weight:       {"0": "0", "100": "100", "0.1": "0.1", "100.0": "100", "1e2": "100", "99.99999999999999": "99.99999999999999"},
	boolean:      {"true": "true", "false": "false"},
	text:         {`""`: `""`, `" "`: `" "`, `"\u0041\ud83d\ude00\n\/"`: `"A😀\n/"`},
	nonEmptyText: {`" "`: `" "`, `"\u0041\ud83d\ude00\t\/"`: `"A😀\t/"`},
}

// TestWrongValues puts every wrong value into every field: the field is blamed,
// it alone, by its path.
func TestWrongValues(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			known := fieldAt(t, full, path)
			wrong := wrongValues[known.kind]
			if strings.HasSuffix(path, "]") || known.required {
				wrong = append([]string{"null"}, wrong...)
			}
			if len(wrong) < 5 {
				t.Fatalf("no wrong values for %s", path)
			}
			t.Run(fmt.Sprint(full.networkType, " ", path), func(t *testing.T) {
				for _, value := range wrong {
					problems := problemsOf(t, replaced(t, full.request, path, value))
					if got := fieldsOf(problems); len(got) != 1 || got[0] != path {
						t.Errorf("%s: blamed %+v", value, problems)
					}
				}
			})
		}
	}
}

// TestRightValues writes the values that a field takes in every way that JSON
// has for them.
func TestRightValues(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			for given, want := range rightValues[fieldAt(t, full, path).kind] {
				document := mustCreateDocument(t, newFullManager(t), replaced(t, full.request, path, given))
				wantDocument := replaced(t, full.document, path, want)
				if got := treeText(t, parseTree(t, string(document.JSON))); got != treeText(t, parseTree(t, wantDocument)) {
					t.Errorf("%s %s: %s became\n%s\nwant\n%s", full.networkType, path, given, got, wantDocument)
				}
			}
		}
	}
}

// TestRequired takes every required field away, and makes it null and empty.
func TestRequired(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			known := fieldAt(t, full, path)
			if !known.required {
				continue
			}
			wantFields(t, problemsOf(t, without(t, full.request, path)), path)
			wantFields(t, problemsOf(t, replaced(t, full.request, path, "null")), path)
			if known.kind != boolean {
				wantFields(t, problemsOf(t, replaced(t, full.request, path, `""`)), path)
			}
		}
	}
}

// TestRangeMessages pins the message that the contract shows, and that the
// bound is told where a number is past it.
func TestRangeMessages(t *testing.T) {
	tests := []struct{ networkType, path, value, want string }{
		{"evm", "policies.gas_price_cap", "-1", "must be 0 or more"},
		{"evm", "policies.gas_price_cap", overMaxAmount, "must be at most 2^256-1"},
		{"evm", "policies.gas_price_cap", "0.5", "must be a whole number"},
		{"evm", "custom_rpc_urls[0].weight", "-1", "must be 0 or more"},
		{"evm", "custom_rpc_urls[0].weight", "101", "must be at most 100"},
		{"solana", "policies.max_signatures", "-5", "must be 0 or more"},
		{"solana", "policies.max_signatures", "2147483648", "must be at most 2147483647"},
		{"solana", "policies.min_balance", "9223372036854775808", "must be at most 9223372036854775807"},
		{"solana", "policies.allowed_tokens[0].decimals", "256", "must be at most 255"},
		{"solana", "policies.allowed_tokens[0].max_allowed_fee", "1e20", "must be at most 18446744073709551615"},
		{"stellar", "policies.allowed_tokens[0].metadata.decimals", "4294967296", "must be at most 4294967295"},
	}
	for _, test := range tests {
		for _, full := range fullRelayers {
			if string(full.networkType) != test.networkType {
				continue
			}
			problems := problemsOf(t, replaced(t, full.request, test.path, test.value))
			if problems[0].Message != test.want {
				t.Errorf("%s = %s: message %q, want %q", test.path, test.value, problems[0].Message, test.want)
			}
		}
	}
}
