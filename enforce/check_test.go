package enforce_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/enforce"
)

// byRelayer is a Solana policy under which the relayer pays.
func byRelayer(rest string) string { return `{"fee_payment_strategy":"relayer"` + rest + `}` }

func noSolana(*enforce.Solana) {}

func TestCheck_Rules(t *testing.T) {
	nativePayments := func(payments ...enforce.Payment) enforce.Solana {
		return solana(func(tx *enforce.Solana) { tx.Payments = payments })
	}
	balance := func(balance, cost *uint64) enforce.Stellar { return enforce.Stellar{Balance: balance, Cost: cost} }
	largest := ^uint64(0)
	for _, c := range []struct {
		name    string
		network relayer.NetworkType
		policy  string
		tx      enforce.Transaction
		want    []string
	}{
		{"an empty entry permits no creation", relayer.EVM, `{"whitelist_receivers":[""]}`, evm(func(tx *enforce.EVM) { tx.To = "" }),
			[]string{"policies.whitelist_receivers not_listed "}},
		{"the last entry", relayer.EVM, `{"whitelist_receivers":["` + self + `","` + addressA + `","` + addressB + `"]}`, evm(plain), nil},
		{"receiver without prefix", relayer.EVM, `{"whitelist_receivers":["` + addressB + `"]}`, evm(func(tx *enforce.EVM) { tx.To = addressB[2:] }),
			[]string{"policies.whitelist_receivers not_listed " + addressB[2:]}},
		{"zero address", relayer.EVM, `{"whitelist_receivers":[]}`, evm(func(tx *enforce.EVM) { tx.To = "0x" + strings.Repeat("0", 40) }),
			[]string{"policies.whitelist_receivers not_listed 0x" + strings.Repeat("0", 40)}},
		{"estimation is permitted", relayer.EVM, `{"gas_limit_estimation":true}`, evm(func(tx *enforce.EVM) { tx.GasLimit = 0 }), nil},
		{"public endpoints are permitted", relayer.EVM, `{"private_transactions":false}`, evm(plain), nil},
		{"price of 0 is given", relayer.EVM, `{"gas_price_cap":1}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = wei("0") }), nil},
		{"cost is not given", relayer.EVM, `{"min_balance":1}`, evm(func(tx *enforce.EVM) { tx.Balance = wei("1") }), []string{"policies.min_balance unknown "}},
		{"cost is not given, no minimum", relayer.EVM, `{"min_balance":0}`, evm(func(tx *enforce.EVM) { tx.Balance = wei("1") }), nil},
		{"cost is not given, balance below", relayer.EVM, `{"min_balance":2}`, evm(func(tx *enforce.EVM) { tx.Balance = wei("1") }),
			[]string{"policies.min_balance below_minimum 1"}},
		{"balance is not given, expensive", relayer.EVM, `{"min_balance":1}`, evm(func(tx *enforce.EVM) { tx.Cost = wei("5") }), []string{"policies.min_balance unknown "}},
		{"debt of 2^256-1", relayer.EVM, `{"min_balance":0}`, evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei("0"), wei(maxWei) }),
			[]string{"policies.min_balance below_minimum -" + maxWei}},
		{"all that 256 bits have", relayer.EVM, `{"min_balance":` + maxWei + `}`, evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei(maxWei), wei("0") }), nil},
		{"difference with a borrow", relayer.EVM, `{"min_balance":18446744073709551615}`,
			evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei("18446744073709551616"), wei("1") }), nil},
		{"no minimum, no balance", relayer.EVM, `{}`, evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei("0"), wei("5") }), nil},

		{"no accounts", relayer.Solana, byRelayer(`,"allowed_accounts":[],"disallowed_accounts":["` + payer + `"],"allowed_programs":[]`), enforce.Solana{},
			[]string{"policies.allowed_accounts unknown ", "policies.allowed_programs unknown ", "policies.disallowed_accounts unknown "}},
		{"no lists", relayer.Solana, byRelayer(""), enforce.Solana{}, nil},
		{"empty list of accounts", relayer.Solana, byRelayer(`,"allowed_accounts":[]`), solana(noSolana), []string{
			"policies.allowed_accounts not_listed " + payer, "policies.allowed_accounts not_listed " + accountX, "policies.allowed_accounts not_listed " + system}},
		{"all accounts are listed", relayer.Solana, byRelayer(`,"allowed_accounts":["` + system + `","` + accountX + `","` + payer + `"]`), solana(noSolana), nil},
		{"accounts not resolved", relayer.Solana, byRelayer(`,"allowed_accounts":["` + payer + `"]`),
			solana(func(tx *enforce.Solana) { tx.Accounts, tx.Unresolved = []string{payer, accountX}, true }),
			[]string{"policies.allowed_accounts not_listed " + accountX, "policies.allowed_accounts unknown "}},
		{"on both lists", relayer.Solana, byRelayer(`,"allowed_accounts":["` + payer + `","` + accountX + `","` + system + `"],"disallowed_accounts":["` + accountX + `"]`), solana(noSolana),
			[]string{"policies.disallowed_accounts listed " + accountX}},
		{"letter case of an account", relayer.Solana, byRelayer(`,"disallowed_accounts":["` + strings.ToLower(payer) + `"]`), solana(noSolana), nil},
		{"two programs", relayer.Solana, byRelayer(`,"allowed_programs":["` + token + `"]`),
			solana(func(tx *enforce.Solana) { tx.Programs = []string{accountX, token, system} }),
			[]string{"policies.allowed_programs not_listed " + accountX, "policies.allowed_programs not_listed " + system}},
		{"lookup tables do not matter to programs", relayer.Solana, byRelayer(`,"allowed_programs":["` + system + `"]`), solana(func(tx *enforce.Solana) { tx.Unresolved = true }), nil},
		{"negative sizes", relayer.Solana, byRelayer(`,"max_signatures":9,"max_tx_data_size":9`), solana(func(tx *enforce.Solana) { tx.Signatures, tx.Size = -1, -1 }),
			[]string{"policies.max_signatures unknown ", "policies.max_tx_data_size unknown "}},
		{"size is not given", relayer.Solana, byRelayer(`,"max_tx_data_size":9`), solana(noSolana), []string{"policies.max_tx_data_size unknown "}},
		{"negative limits are 0", relayer.Solana, byRelayer(`,"max_signatures":-5,"min_balance":-5`),
			solana(func(tx *enforce.Solana) { tx.Balance, tx.Cost = new(uint64(0)), new(uint64(0)) }), []string{"policies.max_signatures above_maximum 1"}},
		{"negative limit of a fee", relayer.Solana, byRelayer(`,"max_allowed_fee_lamports":-1`), solana(func(tx *enforce.Solana) { tx.Fee = &largest }),
			[]string{"policies.max_allowed_fee_lamports above_maximum 18446744073709551615"}},

		{"mints not given, token program", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`), transfers(nil), []string{"policies.allowed_tokens unknown "}},
		{"mints not given, token program 2022", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`),
			solana(func(tx *enforce.Solana) { tx.Programs = []string{system, token2022} }), []string{"policies.allowed_tokens unknown "}},
		{"mints not given, token program of an inner instruction", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`),
			solana(func(tx *enforce.Solana) { tx.Accounts = append(tx.Accounts, token2022) }), []string{"policies.allowed_tokens unknown "}},
		{"mints and lookup tables not given", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`),
			solana(func(tx *enforce.Solana) { tx.Unresolved = true }), []string{"policies.allowed_tokens unknown "}},
		{"mints and accounts not given", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`),
			solana(func(tx *enforce.Solana) { tx.Accounts = nil }), []string{"policies.allowed_tokens unknown "}},
		{"mints and programs not given", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`),
			solana(func(tx *enforce.Solana) { tx.Programs = nil }), []string{"policies.allowed_tokens unknown "}},
		{"mints not given, every token", relayer.Solana, byRelayer(`,"allowed_tokens":[]`), transfers(nil), nil},
		{"mints not given, other program", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`), solana(noSolana), nil},
		{"no mints", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`), transfers([]string{}), nil},
		{"SOL as a transfer", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `"}]`), transfers([]string{enforce.Native}), nil},
		{"a transfer is not a fee", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":0}]`), transfers([]string{usdc}), nil},
		{"XLM is no name of SOL", relayer.Solana, `{"allowed_tokens":[{"mint":"` + usdc + `"}]}`, nativePayments(pays("XLM", 1, 1)), []string{"policies.allowed_tokens not_listed XLM"}},
		{"payment although the relayer pays", relayer.Solana, byRelayer(`,"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":5}]`),
			nativePayments(pays(usdc, 6, 9), pays(bonk, 1, 1)),
			[]string{"policies.allowed_tokens[0].max_allowed_fee above_maximum 6", "policies.allowed_tokens not_listed " + bonk}},
		{"two entries of a token", relayer.Solana, `{"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":5},{"mint":"` + usdc + `","max_allowed_fee":4}]}`,
			nativePayments(pays(usdc, 5, 5)), []string{"policies.allowed_tokens[1].max_allowed_fee above_maximum 5"}},
		{"payment of 2^64-1", relayer.Solana, `{"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":5}]}`, nativePayments(pays(usdc, largest, 5)),
			[]string{"policies.allowed_tokens[0].max_allowed_fee above_maximum 18446744073709551615"}},
		{"maximum of another token", relayer.Solana, `{"allowed_tokens":[{"mint":"` + usdc + `"},{"mint":"` + bonk + `","max_allowed_fee":0}]}`, nativePayments(pays(usdc, 5, 5)), nil},

		{"the second payment is enough", relayer.Solana, `{}`, nativePayments(pays(enforce.Native, 1, 2), pays(usdc, 3, 2)), nil},
		{"quote of the first payment is missing", relayer.Solana, `{}`, nativePayments(enforce.Payment{Asset: usdc}, pays(usdc, 1, 2)), []string{"policies.fee_payment_strategy unknown " + usdc}},
		{"quote of the second payment is missing", relayer.Solana, `{}`, nativePayments(pays(usdc, 1, 2), enforce.Payment{Asset: bonk, Amount: 9}, enforce.Payment{Asset: enforce.Native}),
			[]string{"policies.fee_payment_strategy unknown " + bonk}},
		{"a payment is enough, another quote is missing", relayer.Solana, `{}`, nativePayments(enforce.Payment{Asset: bonk, Amount: 9}, pays(usdc, 2, 2)), nil},
		{"all quotes are given", relayer.Solana, `{}`, nativePayments(pays(usdc, 1, 2), pays(bonk, 3, 4)), []string{"policies.fee_payment_strategy below_minimum 1"}},
		{"quote of XLM is missing", relayer.Stellar, `{"fee_payment_strategy":"user"}`, paysStellar(enforce.Payment{Asset: "XLM", Amount: 9}),
			[]string{"policies.fee_payment_strategy unknown native"}},
		{"quote of XLM on Solana is missing", relayer.Solana, `{}`, nativePayments(enforce.Payment{Asset: "XLM", Amount: 9}),
			[]string{"policies.fee_payment_strategy unknown XLM"}},
		{"payments in their order", relayer.Solana, `{"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":5}]}`, nativePayments(pays(bonk, 1, 1), pays(usdc, 6, 6), pays(bonk, 1, 1)),
			[]string{"policies.allowed_tokens not_listed " + bonk, "policies.allowed_tokens[0].max_allowed_fee above_maximum 6", "policies.allowed_tokens not_listed " + bonk}},
		{"largest payment", relayer.Solana, `{}`, nativePayments(pays(usdc, largest, largest)), nil},
		{"every rule of Solana", relayer.Solana, `{"allowed_accounts":[],"allowed_programs":[],"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":1}],"disallowed_accounts":["` + system + `"],
			"max_allowed_fee_lamports":1,"max_signatures":1,"max_tx_data_size":1,"min_balance":1}`,
			enforce.Solana{Accounts: []string{system}, Programs: []string{system}, Tokens: []string{bonk}, Signatures: 2, Size: 2, Payments: []enforce.Payment{pays(usdc, 2, 3), pays(bonk, 1, 2)}},
			[]string{"policies.allowed_accounts not_listed " + system, "policies.allowed_programs not_listed " + system, "policies.allowed_tokens not_listed " + bonk,
				"policies.allowed_tokens[0].max_allowed_fee above_maximum 2", "policies.allowed_tokens not_listed " + bonk, "policies.disallowed_accounts listed " + system,
				"policies.fee_payment_strategy below_minimum 2", "policies.max_allowed_fee_lamports unknown ", "policies.max_signatures above_maximum 2",
				"policies.max_tx_data_size above_maximum 2", "policies.min_balance unknown "}},
		{"every rule of Stellar", relayer.Stellar, `{"allowed_tokens":[{"asset":"x"}],"fee_payment_strategy":"user","max_fee":1,"min_balance":1}`, paysStellar(pays("y", 1, 2)),
			[]string{"policies.allowed_tokens not_listed y", "policies.fee_payment_strategy below_minimum 1", "policies.max_fee above_maximum 100", "policies.min_balance unknown "}},
		{"unknown strategy", relayer.Solana, `{"fee_payment_strategy":"sponsor"}`, nativePayments(pays(usdc, 1, 1)), []string{"policies.fee_payment_strategy unsupported sponsor"}},
		{"unknown strategy of Stellar", relayer.Stellar, `{"fee_payment_strategy":""}`, paysStellar(), []string{"policies.fee_payment_strategy unsupported "}},

		{"payment as XLM", relayer.Stellar, `{"allowed_tokens":[{"asset":"native","max_allowed_fee":5}]}`, paysStellar(pays("XLM", 6, 6)),
			[]string{"policies.allowed_tokens[0].max_allowed_fee above_maximum 6"}},
		{"both names of XLM", relayer.Stellar, `{"allowed_tokens":[{"asset":"native","max_allowed_fee":7},{"asset":"XLM","max_allowed_fee":5}]}`, paysStellar(pays("XLM", 6, 6)),
			[]string{"policies.allowed_tokens[1].max_allowed_fee above_maximum 6"}},
		{"letter case of an asset", relayer.Stellar, `{"allowed_tokens":[{"asset":"` + strings.ToLower(classicUSDC) + `"}]}`, paysStellar(pays(classicUSDC, 1, 1)),
			[]string{"policies.allowed_tokens not_listed " + classicUSDC}},
		{"payment to a relayer that pays", relayer.Stellar, `{}`, paysStellar(pays(classicUSDC, 1, 2)), nil},
		{"fee of 0 is given", relayer.Stellar, `{"max_fee":0}`, enforce.Stellar{Fee: new(uint64(0))}, nil},
		{"fee equal to the maximum", relayer.Stellar, `{"max_fee":2147483647}`, enforce.Stellar{Fee: new(uint64(2147483647))}, nil},
		{"fee above 2^63", relayer.Stellar, `{"max_fee":2147483647}`, enforce.Stellar{Fee: &largest}, []string{"policies.max_fee above_maximum 18446744073709551615"}},
		{"debt of 2^64-1", relayer.Stellar, `{"min_balance":9223372036854775807}`, balance(new(uint64(0)), &largest), []string{"policies.min_balance below_minimum -18446744073709551615"}},
		{"debt without a minimum", relayer.Stellar, `{"min_balance":0}`, balance(new(uint64(5)), new(uint64(6))), []string{"policies.min_balance below_minimum -1"}},
		{"all is spent", relayer.Stellar, `{"min_balance":0}`, balance(new(uint64(6)), new(uint64(6))), nil},
		{"balance without its cost", relayer.Stellar, `{"min_balance":1}`, balance(&largest, nil), []string{"policies.min_balance unknown "}},
		{"cost without its balance", relayer.Stellar, `{"min_balance":1}`, balance(nil, new(uint64(6))), []string{"policies.min_balance unknown "}},
	} {
		expect(t, c.name, enforce.Check(relayerOf(t, c.network, c.policy), c.tx), c.want)
	}
}

// Both switches, and what is wrong for any policy.
func TestCheck_Relayer(t *testing.T) {
	unknown := &relayer.UnknownPolicy{Type: "move", Raw: json.RawMessage(`{"a":1}`)}
	anEVM, paying := evm(plain), solana(noSolana)
	for _, c := range []struct {
		name string
		r    relayer.Relayer
		tx   enforce.Transaction
		want []string
	}{
		{"both switches and the policy", relayer.Relayer{Paused: true, SystemDisabled: true, DisabledReason: &relayer.DisabledReason{Type: "a\nb"},
			NetworkType: relayer.EVM, Policy: &relayer.EVMPolicy{WhitelistReceivers: []string{}}}, anEVM,
			[]string{"paused paused true", `system_disabled disabled "a\nb"`, "policies.whitelist_receivers not_listed " + addressB}},
		{"disabled without a reason", relayer.Relayer{SystemDisabled: true, NetworkType: relayer.EVM}, anEVM, []string{"system_disabled disabled "}},
		{"a reason although not disabled", relayer.Relayer{DisabledReason: &relayer.DisabledReason{Type: "a"}, NetworkType: relayer.EVM}, anEVM, nil},
		{"no policy", relayer.Relayer{NetworkType: relayer.EVM}, anEVM, nil},
		{"nil policy", relayer.Relayer{NetworkType: relayer.EVM, Policy: (*relayer.EVMPolicy)(nil)}, anEVM, nil},
		{"no policy of Solana", relayer.Relayer{NetworkType: relayer.Solana}, paying, []string{"policies.fee_payment_strategy missing "}},
		{"no policy of Stellar", relayer.Relayer{NetworkType: relayer.Stellar}, enforce.Stellar{}, nil},
		{"policy of another network type", relayer.Relayer{NetworkType: relayer.EVM, Policy: &relayer.SolanaPolicy{}}, anEVM, []string{"policies unsupported "}},
		{"nil policy of another network type", relayer.Relayer{NetworkType: relayer.EVM, Policy: (*relayer.SolanaPolicy)(nil)}, anEVM, []string{"policies unsupported "}},
		{"unknown policy of a known network type", relayer.Relayer{NetworkType: relayer.EVM, Policy: unknown}, anEVM, []string{"policies unsupported "}},
		{"unknown network type", relayer.Relayer{NetworkType: "move", Policy: unknown}, anEVM, []string{"network_type unsupported move"}},
		{"no network type", relayer.Relayer{Policy: &relayer.EVMPolicy{}}, anEVM, []string{"network_type unsupported "}},
		{"other network types", relayer.Relayer{NetworkType: relayer.Solana}, anEVM, []string{"network_type wrong_network evm"}},
		{"Stellar for EVM", relayer.Relayer{NetworkType: relayer.EVM, Paused: true}, enforce.Stellar{}, []string{"paused paused true", "network_type wrong_network stellar"}},
		{"no transaction", relayer.Relayer{NetworkType: relayer.EVM, Paused: true}, nil, []string{"paused paused true", "network_type unknown "}},
		{"nil EVM", relayer.Relayer{NetworkType: relayer.EVM}, (*enforce.EVM)(nil), []string{"network_type unknown "}},
		{"nil EVM for an unknown network type", relayer.Relayer{NetworkType: "move", Policy: unknown}, (*enforce.EVM)(nil), []string{"network_type unknown "}},
		{"nil Solana", relayer.Relayer{NetworkType: relayer.Solana}, (*enforce.Solana)(nil), []string{"network_type unknown "}},
		{"nil Stellar", relayer.Relayer{NetworkType: relayer.Stellar}, (*enforce.Stellar)(nil), []string{"network_type unknown "}},
	} {
		c.r.ID = "r"
		expect(t, c.name, enforce.Check(&c.r, c.tx), c.want)
	}
	refused, ok := errors.AsType[*enforce.Error](enforce.Check(nil, anEVM))
	if !ok || !slices.Equal(refused.Violations, []enforce.Violation{{Field: "id", Code: enforce.Unknown}}) {
		t.Errorf("without a relayer: %v", refused)
	}
	if text := refused.Error(); text != "enforce: relayer without an ID must not send the transaction: id unknown" {
		t.Errorf("the text without a relayer is %q", text)
	}
}

// The limit of a violation is that of the policy, or the required payment.
func TestCheck_Limits(t *testing.T) {
	for id, want := range map[string]string{
		"C1": "", "E3": "", "E13": "30000000000", "E19": "30000000000", "E20": "", "E23": "", "E26": "1000000000000000000", "E28": "1",
		"S2": "", "S14": "2", "S16": "2", "S18": "1232", "S21": "5000", "S25": "10000000", "S34": "1000", "S37": "1000", "S40": "", "S43": "1", "X3": "100",
	} {
		v := vectors[slices.IndexFunc(vectors, func(v vector) bool { return v.id == id })]
		if refused := refusal(enforce.Check(v.relayer(t), v.tx)); refused.RelayerID != "r" || refused.Violations[0].Limit != want {
			t.Errorf("%s: %v, want the limit %q", id, refused, want)
		}
	}
	debt := enforce.Check(relayerOf(t, relayer.EVM, `{"min_balance":3}`), evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei("5"), wei("6") }))
	if refused := refusal(debt); refused.Violations[0].Limit != "3" {
		t.Errorf("below 0: %v", refused)
	}
}

// An engine can send the error to its client.
func TestError_JSON(t *testing.T) {
	err := enforce.Check(relayerOf(t, relayer.EVM, `{"gas_price_cap":30,"whitelist_receivers":[]}`),
		enforce.EVM{To: "<a href='\u202e'>\x00\"", MaxFeePerGas: wei("31"), GasLimit: 1})
	encoded, encodeErr := json.Marshal(err)
	want := `{"relayer_id":"r","violations":[` +
		`{"field":"policies.gas_price_cap","code":"above_maximum","value":"31","limit":"30"},` +
		`{"field":"policies.whitelist_receivers","code":"not_listed","value":"\"\u003ca href='\\u202e'\u003e\\x00\\\"\""}]}`
	if string(encoded) != want || encodeErr != nil {
		t.Errorf("the JSON form is %s, %v, want %s", encoded, encodeErr, want)
	}
	var decoded enforce.Error
	if decodeErr := json.Unmarshal(encoded, &decoded); decodeErr != nil || !reflect.DeepEqual(&decoded, err) {
		t.Errorf("decoded %v, %v, want %v", decoded, decodeErr, err)
	}
	const text = "enforce: relayer r must not send the transaction: policies.gas_price_cap above_maximum 31, limit 30; " +
		`policies.whitelist_receivers not_listed "<a href='\u202e'>\x00\""`
	if err.Error() != text {
		t.Errorf("the text is %s, want %s", err, text)
	}
}

// isBounded reports whether a text of an error is printable and has at most 256 bytes.
func isBounded(text string) bool {
	return len(text) <= 256 && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func TestError_Bounds(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprint("account", i)
	}
	refused := refusal(enforce.Check(relayerOf(t, relayer.Solana, `{"allowed_accounts":[],"max_signatures":0}`), enforce.Solana{Accounts: many}))
	if len(refused.Violations) != 1000 || refused.Violations[999].Value != "account999" {
		t.Fatalf("%d violations, want the first 1000", len(refused.Violations))
	}
	if text := refused.Error(); !strings.HasSuffix(text, "policies.allowed_accounts not_listed account9; and 990 more") || strings.Contains(text, "account10") {
		t.Errorf("the text is %s", text)
	}
	for text, want := range map[string]string{
		strings.Repeat("a", 256):        strings.Repeat("a", 256),
		strings.Repeat("a", 257):        strings.Repeat("a", 253) + "…",
		strings.Repeat("é", 200):        strings.Repeat("é", 126) + "…",
		strings.Repeat("\x00", 256):     `"` + strings.Repeat(`\x00`, 63) + "…",
		strings.Repeat("\x80", 300):     "…",
		"\xff":                          `"\xff"`,
		`a"b`:                           `"a\"b"`,
		"0x01\n":                        `"0x01\n"`,
		strings.Repeat("a", 255) + "\n": `"` + strings.Repeat("a", 252) + "…",
	} {
		r := relayerOf(t, relayer.EVM, `{"whitelist_receivers":[]}`)
		r.ID = text
		refused := refusal(enforce.Check(r, enforce.EVM{To: text}))
		if refused.Violations[0].Value != want || refused.RelayerID != want || !isBounded(want) {
			t.Errorf("%.20q: %v, want %s", text, refused, want)
		}
	}
}

// refusal returns the error of a check, with an empty violation for none.
func refusal(err error) *enforce.Error {
	if refused, ok := errors.AsType[*enforce.Error](err); ok && len(refused.Violations) > 0 {
		return refused
	}
	return &enforce.Error{Violations: make([]enforce.Violation, 1)}
}

// settings are the policy fields that no transaction is compared with.
var settings = []string{"eip1559_pricing", "include_revert_data", "fee_margin_percentage", "slippage_percentage", "timeout_seconds",
	"concurrent_transactions", "swap_config", "decimals", "symbol", "metadata", "mint", "asset"}

var words = regexp.MustCompile(`[a-z_0-9]+`)

// A field of a policy is a setting, or a vector violates it. The documentation names both.
func TestDocumentation_EveryPolicyField(t *testing.T) {
	violated := make(map[string]bool)
	for _, v := range vectors {
		for _, line := range v.want {
			for _, word := range words.FindAllString(strings.Fields(line)[0], -1) {
				violated[string(networks[v.id[0]])+" "+word] = true
			}
		}
	}
	violated["stellar max_allowed_fee"] = true // TestCheck_Rules
	source, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := words.FindAllString(string(source), -1)
	for _, c := range []struct {
		network relayer.NetworkType
		object  any
	}{
		{relayer.EVM, relayer.EVMPolicy{}}, {relayer.Solana, relayer.SolanaPolicy{}}, {relayer.Stellar, relayer.StellarPolicy{}},
		{relayer.Solana, relayer.SolanaAllowedToken{}}, {relayer.Stellar, relayer.StellarAllowedToken{}},
	} {
		for field := range reflect.TypeOf(c.object).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if isDecided := violated[string(c.network)+" "+name]; isDecided == slices.Contains(settings, name) {
				t.Errorf("%s of %s: violated by a vector is %t, and a setting is %t", name, c.network, isDecided, !isDecided)
			}
			if name != "mint" && name != "asset" && !slices.Contains(documented, name) {
				t.Errorf("doc.go does not name %s of %s", name, c.network)
			}
		}
	}
}

// A check that permits a transaction of each network does not allocate. The transactions have every
// field, and the relayers limit every field.
func TestCheck_PermitsWithoutAllocation(t *testing.T) {
	receivers := make([]string, 100)
	for i := range receivers {
		hash := sha256.Sum256([]byte{byte(i)})
		receivers[i] = fmt.Sprintf("0x%x", hash[:20])
	}
	list := `["` + strings.Join(receivers, `","`) + `"]`
	evmTx := enforce.EVM{To: "0x" + strings.ToUpper(receivers[99][2:]), MaxFeePerGas: wei("1e30"), GasLimit: 21000, Private: true, Balance: wei("3e30"), Cost: wei("1e30")}
	solanaTx := transfers([]string{usdc}, pays(usdc, 9, 9))
	solanaTx.Size, solanaTx.Fee, solanaTx.Cost, solanaTx.Balance = 9, new(uint64(9)), new(uint64(9)), new(uint64(10))
	stellarTx := paysStellar(pays(enforce.Native, 9, 9))
	stellarTx.Cost, stellarTx.Balance = new(uint64(9)), new(uint64(10))
	for _, c := range []struct {
		network relayer.NetworkType
		policy  string
		tx      enforce.Transaction
	}{
		{relayer.EVM, `{"gas_limit_estimation":false,"gas_price_cap":` + maxWei + `,"min_balance":1e18,"private_transactions":true,"whitelist_receivers":` + list + `}`, evmTx},
		{relayer.Solana, `{"allowed_accounts":["` + payer + `","` + accountX + `","` + token + `"],"allowed_programs":["` + token + `"],
			"allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":9}],"disallowed_accounts":["` + system + `"],"max_allowed_fee_lamports":9,"max_signatures":1,"max_tx_data_size":9,"min_balance":1}`, solanaTx},
		{relayer.Stellar, `{"allowed_tokens":[{"asset":"XLM","max_allowed_fee":9}],"fee_payment_strategy":"user","max_fee":100,"min_balance":1}`, stellarTx},
	} {
		r := relayerOf(t, c.network, c.policy)
		if err := enforce.Check(r, c.tx); err != nil {
			t.Fatalf("%s: %v", c.network, err)
		}
		if allocations := testing.AllocsPerRun(100, func() { _ = enforce.Check(r, c.tx) }); allocations != 0 {
			t.Errorf("%s: %v allocations", c.network, allocations)
		}
	}
}
