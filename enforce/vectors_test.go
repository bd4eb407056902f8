package enforce_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/enforce"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	addressA = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
	lowerA   = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"
	upperA   = "0x5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED"
	addressB = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
	self     = "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB"

	payer     = "8ZU4Uj4pGHKX1MQsbcVDWsYmMpLRz3Wxfz2ZB7gGkGvE"
	accountX  = "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG"
	system    = "11111111111111111111111111111111"
	token     = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	token2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
	usdc      = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGkZwyTDt1v"
	bonk      = "DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263"

	classicUSDC  = "USDC:GA5ZSEJYB37JRC5AVCIA5MOP4RHTM335X2KGX3IHOJAPP5RE34K4KZVN"
	contractUSDC = "CCW67TSZV3SSS2HXMBQ5JFGCKJNXKZM7UQUWUZPUTHXSTZLEO7SJMI75"

	maxWei = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
)

func wei(text string) *relayer.Amount { return new(relayer.MustParseAmount(text)) }

func evm(change func(*enforce.EVM)) enforce.EVM {
	tx := enforce.EVM{To: addressB, MaxFeePerGas: wei("1"), GasLimit: 21000}
	change(&tx)
	return tx
}

func solana(change func(*enforce.Solana)) enforce.Solana {
	tx := enforce.Solana{Accounts: []string{payer, accountX, system}, Programs: []string{system}, Signatures: 1}
	change(&tx)
	return tx
}

// pays returns a payment of an amount for which the relayer requires another.
func pays(asset string, amount, required uint64) enforce.Payment {
	return enforce.Payment{Asset: asset, Amount: amount, Required: new(required)}
}

// transfers is a call of the token program, with payments to the relayer.
func transfers(mints []string, payments ...enforce.Payment) enforce.Solana {
	return enforce.Solana{Accounts: []string{payer, accountX, token}, Programs: []string{token}, Tokens: mints, Signatures: 1, Payments: payments}
}

func paysStellar(payments ...enforce.Payment) enforce.Stellar {
	return enforce.Stellar{Fee: new(uint64(100)), Payments: payments}
}

type vector struct {
	id     string
	policy string
	tx     enforce.Transaction
	want   []string // field, code and value of each violation
}

var plain = func(*enforce.EVM) {}

var vectors = []vector{
	{"C1", `{}`, evm(plain), []string{"paused paused true"}},
	{"C2", `{}`, evm(plain), []string{"system_disabled disabled NonceSyncFailed"}},
	{"C4", `{"whitelist_receivers":[]}`, solana(func(*enforce.Solana) {}), []string{"network_type wrong_network solana"}},

	{"E1", `{}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = wei(maxWei) }), nil},
	{"E2", `{"whitelist_receivers":null}`, evm(plain), nil},
	{"E3", `{"whitelist_receivers":[]}`, evm(plain), []string{"policies.whitelist_receivers not_listed " + addressB}},
	{"E4", `{"whitelist_receivers":["` + addressA + `"]}`, evm(func(tx *enforce.EVM) { tx.To = lowerA }), nil},
	{"E5", `{"whitelist_receivers":["` + lowerA + `"]}`, evm(func(tx *enforce.EVM) { tx.To = upperA }), nil},
	{"E6", `{"whitelist_receivers":["` + addressA + `"]}`, evm(plain), []string{"policies.whitelist_receivers not_listed " + addressB}},
	{"E7", `{"whitelist_receivers":["` + addressA + `"]}`, evm(func(tx *enforce.EVM) { tx.To = "" }), []string{"policies.whitelist_receivers not_listed "}},
	{"E8", `{"whitelist_receivers":null}`, evm(func(tx *enforce.EVM) { tx.To = "" }), nil},
	{"E10", `{"whitelist_receivers":["` + addressA + `"]}`, evm(func(tx *enforce.EVM) { tx.To = self }), []string{"policies.whitelist_receivers not_listed " + self}},
	{"E12", `{"gas_price_cap":30000000000}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = new(relayer.Gwei(30)) }), nil},
	{"E13", `{"gas_price_cap":30000000000}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = wei("30000000001") }), []string{"policies.gas_price_cap above_maximum 30000000001"}},
	{"E14", `{"gas_price_cap":30000000000}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = new(relayer.Gwei(40)) }), []string{"policies.gas_price_cap above_maximum 40000000000"}},
	{"E15", `{"gas_price_cap":0}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = wei("0") }), nil},
	{"E16", `{"gas_price_cap":0}`, evm(plain), []string{"policies.gas_price_cap above_maximum 1"}},
	{"E17", `{"gas_price_cap":` + maxWei + `}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = wei(maxWei) }), nil},
	{"E19", `{"gas_price_cap":30000000000}`, evm(func(tx *enforce.EVM) { tx.MaxFeePerGas = nil }), []string{"policies.gas_price_cap unknown "}},
	{"E20", `{"gas_limit_estimation":false}`, evm(func(tx *enforce.EVM) { tx.GasLimit = 0 }), []string{"policies.gas_limit_estimation missing "}},
	{"E21", `{"gas_limit_estimation":false}`, evm(plain), nil},
	{"E22", `{"gas_limit_estimation":null}`, evm(func(tx *enforce.EVM) { tx.GasLimit = 0 }), nil},
	{"E23", `{"private_transactions":true}`, evm(plain), []string{"policies.private_transactions missing "}},
	{"E24", `{"private_transactions":true}`, evm(func(tx *enforce.EVM) { tx.Private = true }), nil},
	{"E25", `{"min_balance":1000000000000000000}`, evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei("2e18"), wei("1e18") }), nil},
	{"E26", `{"min_balance":1000000000000000000}`, evm(func(tx *enforce.EVM) { tx.Balance, tx.Cost = wei("2e18"), wei("1000000000000000001") }),
		[]string{"policies.min_balance below_minimum 999999999999999999"}},
	{"E28", `{"min_balance":1}`, evm(func(tx *enforce.EVM) { tx.Cost = wei("1") }), []string{"policies.min_balance unknown "}},
	{"E29", `{"min_balance":0}`, evm(func(tx *enforce.EVM) { tx.Cost = wei("1") }), nil},
	{"E31", `{"gas_limit_estimation":false,"gas_price_cap":30,"min_balance":10,"whitelist_receivers":[]}`,
		enforce.EVM{MaxFeePerGas: wei("31"), Balance: wei("9")},
		[]string{"policies.gas_limit_estimation missing ", "policies.gas_price_cap above_maximum 31", "policies.min_balance below_minimum 9", "policies.whitelist_receivers not_listed "}},
	{"E32", `{"eip1559_pricing":false,"include_revert_data":true}`, evm(plain), nil},

	{"S1", `{"fee_payment_strategy":"relayer","allowed_programs":null}`, solana(func(*enforce.Solana) {}), nil},
	{"S2", `{"fee_payment_strategy":"relayer","allowed_programs":[]}`, solana(func(*enforce.Solana) {}), []string{"policies.allowed_programs not_listed " + system}},
	{"S4", `{"fee_payment_strategy":"relayer","allowed_accounts":["` + payer + `","` + accountX + `"]}`, solana(func(*enforce.Solana) {}),
		[]string{"policies.allowed_accounts not_listed " + system}},
	{"S7", `{"fee_payment_strategy":"relayer","disallowed_accounts":[]}`, solana(func(*enforce.Solana) {}), nil},
	{"S8", `{"fee_payment_strategy":"relayer","disallowed_accounts":["` + system + `"]}`, solana(func(*enforce.Solana) {}),
		[]string{"policies.disallowed_accounts listed " + system}},
	{"S10", `{"fee_payment_strategy":"relayer","disallowed_accounts":["` + accountX + `"]}`,
		solana(func(tx *enforce.Solana) { tx.Accounts = []string{payer, system, accountX} }), []string{"policies.disallowed_accounts listed " + accountX}},
	{"S11", `{"fee_payment_strategy":"relayer","disallowed_accounts":["` + accountX + `"]}`,
		solana(func(tx *enforce.Solana) { tx.Accounts, tx.Unresolved = []string{payer, system}, true }), []string{"policies.disallowed_accounts unknown "}},
	{"S13", `{"fee_payment_strategy":"relayer","max_signatures":2}`, solana(func(tx *enforce.Solana) { tx.Signatures = 2 }), nil},
	{"S14", `{"fee_payment_strategy":"relayer","max_signatures":2}`, solana(func(tx *enforce.Solana) { tx.Signatures = 3 }), []string{"policies.max_signatures above_maximum 3"}},
	{"S15", `{"fee_payment_strategy":"relayer","max_signatures":0}`, solana(func(*enforce.Solana) {}), []string{"policies.max_signatures above_maximum 1"}},
	{"S16", `{"fee_payment_strategy":"relayer","max_signatures":2}`, solana(func(tx *enforce.Solana) { tx.Signatures = 0 }), []string{"policies.max_signatures unknown "}},
	{"S17", `{"fee_payment_strategy":"relayer","max_tx_data_size":1232}`, solana(func(tx *enforce.Solana) { tx.Size = 1232 }), nil},
	{"S18", `{"fee_payment_strategy":"relayer","max_tx_data_size":1232}`, solana(func(tx *enforce.Solana) { tx.Size = 1233 }), []string{"policies.max_tx_data_size above_maximum 1233"}},
	{"S20", `{"fee_payment_strategy":"relayer","max_allowed_fee_lamports":5000}`, solana(func(tx *enforce.Solana) { tx.Fee = new(uint64(5000)) }), nil},
	{"S21", `{"fee_payment_strategy":"relayer","max_allowed_fee_lamports":5000}`, solana(func(tx *enforce.Solana) { tx.Fee = new(uint64(5001)) }),
		[]string{"policies.max_allowed_fee_lamports above_maximum 5001"}},
	{"S23", `{"fee_payment_strategy":"relayer","max_allowed_fee_lamports":5000}`, solana(func(*enforce.Solana) {}), []string{"policies.max_allowed_fee_lamports unknown "}},
	{"S24", `{"fee_payment_strategy":"relayer","min_balance":10000000}`,
		solana(func(tx *enforce.Solana) { tx.Balance, tx.Cost = new(uint64(10005000)), new(uint64(5000)) }), nil},
	{"S25", `{"fee_payment_strategy":"relayer","min_balance":10000000}`,
		solana(func(tx *enforce.Solana) { tx.Balance, tx.Cost = new(uint64(10004999)), new(uint64(5000)) }), []string{"policies.min_balance below_minimum 9999999"}},
	{"S27", `{"fee_payment_strategy":"relayer","allowed_tokens":[]}`, transfers([]string{bonk}), nil},
	{"S28", `{"fee_payment_strategy":"relayer","allowed_tokens":[{"mint":"` + usdc + `"}]}`, transfers([]string{usdc, bonk}), []string{"policies.allowed_tokens not_listed " + bonk}},
	{"S30", `{"fee_payment_strategy":"relayer","allowed_tokens":[{"mint":"` + usdc + `","decimals":6}]}`, transfers([]string{usdc}), nil},
	{"S31", `{}`, solana(func(*enforce.Solana) {}), []string{"policies.fee_payment_strategy missing "}},
	{"S32", `{"fee_payment_strategy":"user"}`, solana(func(*enforce.Solana) {}), []string{"policies.fee_payment_strategy missing "}},
	{"S33", `{"fee_payment_strategy":"user","allowed_tokens":[{"mint":"` + usdc + `"}]}`,
		solana(func(tx *enforce.Solana) { tx.Payments = []enforce.Payment{pays(enforce.Native, 5000, 5000)} }), nil},
	{"S34", `{"fee_payment_strategy":"user"}`, transfers([]string{usdc}, pays(usdc, 999, 1000)), []string{"policies.fee_payment_strategy below_minimum 999"}},
	{"S35", `{"fee_payment_strategy":"user","allowed_tokens":[{"mint":"` + usdc + `"}]}`, transfers([]string{bonk}, pays(bonk, 1, 1)),
		[]string{"policies.allowed_tokens not_listed " + bonk, "policies.allowed_tokens not_listed " + bonk}},
	{"S36", `{"fee_payment_strategy":"user","allowed_tokens":[{"mint":"` + usdc + `","max_allowed_fee":1000}]}`, transfers([]string{usdc}, pays(usdc, 1000, 900)), nil},
	{"S37", `{"fee_payment_strategy":"user","allowed_tokens":[{"mint":"` + bonk + `"},{"mint":"` + usdc + `","max_allowed_fee":1000}]}`,
		transfers([]string{usdc}, pays(usdc, 1001, 900)), []string{"policies.allowed_tokens[1].max_allowed_fee above_maximum 1001"}},
	{"S38", `{"fee_payment_strategy":"user"}`,
		solana(func(tx *enforce.Solana) {
			tx.Payments = []enforce.Payment{pays(enforce.Native, 600, 1000), pays(enforce.Native, 400, 1000)}
		}), []string{"policies.fee_payment_strategy below_minimum 600"}},
	{"S40", `{"fee_payment_strategy":"user"}`,
		solana(func(tx *enforce.Solana) { tx.Payments = []enforce.Payment{{Asset: enforce.Native, Amount: 5}} }), []string{"policies.fee_payment_strategy unknown native"}},
	{"S41", `{"fee_payment_strategy":"relayer","fee_margin_percentage":10}`, solana(func(*enforce.Solana) {}), nil},
	{"S42", `{"fee_payment_strategy":"relayer","disallowed_accounts":[]}`, solana(func(tx *enforce.Solana) { tx.Unresolved = true }), nil},
	{"S43", `{"fee_payment_strategy":"relayer","min_balance":1}`,
		solana(func(tx *enforce.Solana) { tx.Balance, tx.Cost = new(uint64(5)), new(uint64(6)) }), []string{"policies.min_balance below_minimum -1"}},
	{"S44", `{"fee_payment_strategy":"relayer","min_balance":0}`, solana(func(*enforce.Solana) {}), nil},

	{"X1", `{}`, paysStellar(), nil},
	{"X2", `{"max_fee":1000}`, enforce.Stellar{Fee: new(uint64(1000))}, nil},
	{"X3", `{"max_fee":100}`, enforce.Stellar{Fee: new(uint64(1000))}, []string{"policies.max_fee above_maximum 1000"}},
	{"X4", `{"max_fee":100000}`, enforce.Stellar{Fee: new(uint64(1000000))}, []string{"policies.max_fee above_maximum 1000000"}},
	{"X7", `{"max_fee":100}`, enforce.Stellar{}, []string{"policies.max_fee unknown "}},
	{"X8", `{"fee_payment_strategy":"user"}`, paysStellar(), []string{"policies.fee_payment_strategy missing "}},
	{"X9", `{"fee_payment_strategy":"user","allowed_tokens":[{"asset":"native"}]}`, paysStellar(pays(enforce.Native, 100, 100)), nil},
	{"X10", `{"fee_payment_strategy":"user","allowed_tokens":[{"asset":"XLM"}]}`, paysStellar(pays(enforce.Native, 100, 100)), nil},
	{"X11", `{"fee_payment_strategy":"user","allowed_tokens":[{"asset":"` + classicUSDC + `"}]}`, paysStellar(pays(enforce.Native, 100, 100)),
		[]string{"policies.allowed_tokens not_listed native"}},
	{"X12", `{"fee_payment_strategy":"user","allowed_tokens":[{"asset":"` + classicUSDC + `"}]}`, paysStellar(pays(classicUSDC, 100, 100)), nil},
	{"X14", `{"fee_payment_strategy":"user","allowed_tokens":[{"asset":"` + contractUSDC + `"}]}`, paysStellar(pays(contractUSDC, 100, 100)), nil},
	{"X16", `{"fee_payment_strategy":"user","allowed_tokens":[]}`, paysStellar(pays(classicUSDC, 100, 100)), nil},
	{"X17", `{"fee_payment_strategy":"user","allowed_tokens":[{"asset":"` + classicUSDC + `","max_allowed_fee":100000000}]}`,
		paysStellar(pays(classicUSDC, 100000000, 100000000)), nil},
	{"X19", `{"fee_payment_strategy":"user","slippage_percentage":1}`, paysStellar(pays(enforce.Native, 99, 100)), []string{"policies.fee_payment_strategy below_minimum 99"}},
	{"X21", `{"fee_payment_strategy":"relayer","timeout_seconds":30}`, paysStellar(), nil},
	{"X23", `{"fee_payment_strategy":"relayer","min_balance":10000000}`, enforce.Stellar{Balance: new(uint64(10000100)), Cost: new(uint64(100))}, nil},
	{"X24", `{"fee_payment_strategy":"relayer","min_balance":10000000}`, enforce.Stellar{Balance: new(uint64(10000099)), Cost: new(uint64(100))},
		[]string{"policies.min_balance below_minimum 9999999"}},
}

// networks has the network of the relayer by the first letter of a vector.
var networks = map[byte]relayer.NetworkType{'C': relayer.EVM, 'E': relayer.EVM, 'S': relayer.Solana, 'X': relayer.Stellar}

// relayerOf returns a relayer with the policy in JSON.
func relayerOf(t testing.TB, network relayer.NetworkType, policy string) *relayer.Relayer {
	t.Helper()
	r := &relayer.Relayer{ID: "r", Name: "n", Network: "x", NetworkType: network, SignerID: "s", Address: self}
	switch network {
	case relayer.EVM:
		r.Policy = new(relayer.EVMPolicy)
	case relayer.Solana:
		r.Policy = new(relayer.SolanaPolicy)
	case relayer.Stellar:
		r.Policy = new(relayer.StellarPolicy)
	}
	if err := json.Unmarshal([]byte(policy), r.Policy); err != nil {
		t.Fatalf("%s: %v", policy, err)
	}
	return r
}

// relayer returns the relayer of a vector.
func (v vector) relayer(t testing.TB) *relayer.Relayer {
	t.Helper()
	r := relayerOf(t, networks[v.id[0]], v.policy)
	r.Paused = v.id == "C1"
	if v.id == "C2" {
		r.SystemDisabled, r.DisabledReason = true, &relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "x"}
	}
	return r
}

// found returns field, code and value of each violation.
func found(t testing.TB, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	refused, ok := errors.AsType[*enforce.Error](err)
	if !ok || refused.RelayerID != "r" || len(refused.Violations) == 0 {
		t.Fatalf("the error is %#v", err)
	}
	var lines []string
	for _, v := range refused.Violations {
		lines = append(lines, fmt.Sprintf("%s %s %s", v.Field, v.Code, v.Value))
	}
	return lines
}

func expect(t *testing.T, name string, err error, want []string) {
	t.Helper()
	if got := found(t, err); !slices.Equal(got, want) {
		t.Errorf("%s: violations are\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A pointer to a transaction decides as the transaction, and a relayer that was stored and read as
// the one in memory.
func TestCheck_Vectors(t *testing.T) {
	ids := make(map[string]bool)
	for _, v := range vectors {
		ids[v.id] = true
		r := v.relayer(t)
		pointer := reflect.New(reflect.TypeOf(v.tx))
		pointer.Elem().Set(reflect.ValueOf(v.tx))
		expect(t, v.id, enforce.Check(r, v.tx), v.want)
		expect(t, v.id+" by pointer", enforce.Check(r, pointer.Interface().(enforce.Transaction)), v.want)
		expect(t, v.id+" stored", enforce.Check(stored(t, r), v.tx), v.want)
	}
	if len(ids) != 81 {
		t.Errorf("%d vectors, want 81", len(ids))
	}
}

// stored returns a relayer as a registry returns it.
func stored(t *testing.T, r *relayer.Relayer) *relayer.Relayer {
	t.Helper()
	manager, err := relayer.New(memory.New(), relayer.WithNetworkRules())
	if err != nil {
		t.Fatal(err)
	}
	read, err := manager.Create(t.Context(), relayer.CreateRequest{ID: r.ID, Name: r.Name, Network: r.Network,
		NetworkType: r.NetworkType, SignerID: r.SignerID, Paused: r.Paused, Policy: r.Policy})
	if err == nil && r.SystemDisabled {
		read, err = manager.Disable(t.Context(), r.ID, *r.DisabledReason)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}
