package properties

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/enforce"
)

// Few texts and small numbers, so that rules permit and refuse.
func drawTexts(t *rapid.T, label string) []string {
	return rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string])).Draw(t, label)
}

func drawPointer[N any](t *rapid.T, label string, number func(uint64) N) *N {
	n := rapid.Uint64Range(0, 6).Draw(t, label)
	if n == 6 {
		return nil
	}
	return new(number(n))
}

func asAmount(n uint64) relayer.Amount { return relayer.MustParseAmount(strconv.FormatUint(n, 10)) }

func drawFlag(t *rapid.T, label string) *bool {
	return rapid.SampledFrom([]*bool{nil, new(false), new(true)}).Draw(t, label)
}

func drawStrategy(t *rapid.T) *relayer.FeePaymentStrategy {
	return rapid.SampledFrom([]*relayer.FeePaymentStrategy{nil, new(relayer.FeePaidByUser), new(relayer.FeePaidByRelayer)}).Draw(t, "strategy")
}

func drawPayments(t *rapid.T) (payments []enforce.Payment) {
	for range rapid.IntRange(0, 3).Draw(t, "payments") {
		payments = append(payments, enforce.Payment{Asset: rapid.SampledFrom([]string{"a", "b", "c", enforce.Native}).Draw(t, "asset"),
			Amount: rapid.Uint64Range(0, 5).Draw(t, "amount"), Required: drawPointer(t, "required", same)})
	}
	return payments
}

func same(n uint64) uint64 { return n }

func asInt64(n uint64) int64 { return int64(n) }

func asInt32(n uint64) int32 { return int32(n) }

// drawChecked returns a relayer and a transaction of its network type.
func drawChecked(t *rapid.T) (*relayer.Relayer, enforce.Transaction) {
	r := &relayer.Relayer{ID: "r", Paused: rapid.Bool().Draw(t, "paused"), NetworkType: rapid.SampledFrom(relayer.NetworkTypes()).Draw(t, "type")}
	balance, cost := drawPointer(t, "balance", same), drawPointer(t, "cost", same)
	switch r.NetworkType {
	case relayer.EVM:
		r.Policy = &relayer.EVMPolicy{EIP1559Pricing: drawFlag(t, "pricing"), GasLimitEstimation: drawFlag(t, "estimation"),
			GasPriceCap: drawPointer(t, "cap", asAmount), MinBalance: drawPointer(t, "minimum", asAmount),
			PrivateTransactions: drawFlag(t, "private only"), WhitelistReceivers: drawTexts(t, "receivers")}
		tx := enforce.EVM{To: rapid.SampledFrom([]string{"", "a", "A", "b", "e"}).Draw(t, "to"), MaxFeePerGas: drawPointer(t, "price", asAmount),
			GasLimit: rapid.Uint64Range(0, 1).Draw(t, "gas"), Private: rapid.Bool().Draw(t, "private")}
		if balance != nil {
			tx.Balance = new(asAmount(*balance))
		}
		if cost != nil {
			tx.Cost = new(asAmount(*cost))
		}
		return r, tx
	case relayer.Solana:
		policy := &relayer.SolanaPolicy{AllowedAccounts: drawTexts(t, "accounts"), AllowedPrograms: drawTexts(t, "programs"),
			DisallowedAccounts: drawTexts(t, "disallowed"), FeePaymentStrategy: drawStrategy(t), MaxAllowedFeeLamports: drawPointer(t, "max fee", asInt64),
			MaxSignatures: drawPointer(t, "max signatures", asInt32), MaxTxDataSize: drawPointer(t, "max size", asInt32), MinBalance: drawPointer(t, "minimum", asInt64)}
		for _, mint := range drawTexts(t, "tokens") {
			policy.AllowedTokens = append(policy.AllowedTokens, relayer.SolanaAllowedToken{Mint: mint, MaxAllowedFee: drawPointer(t, "max token", same)})
		}
		r.Policy = policy
		return r, enforce.Solana{Accounts: drawTexts(t, "named"), Unresolved: rapid.Bool().Draw(t, "unresolved"), Programs: drawTexts(t, "called"),
			Tokens: drawTexts(t, "transferred"), Signatures: rapid.IntRange(-1, 5).Draw(t, "signatures"), Size: rapid.IntRange(-1, 5).Draw(t, "size"),
			Payments: drawPayments(t), Fee: drawPointer(t, "fee", same), Balance: balance, Cost: cost}
	default:
		policy := &relayer.StellarPolicy{FeePaymentStrategy: drawStrategy(t), MaxFee: drawPointer(t, "max fee", asInt32), MinBalance: drawPointer(t, "minimum", asInt64)}
		for _, asset := range append(drawTexts(t, "tokens"), rapid.SampledFrom([][]string{nil, {"XLM"}, {"native"}}).Draw(t, "native")...) {
			policy.AllowedTokens = append(policy.AllowedTokens, relayer.StellarAllowedToken{Asset: asset, MaxAllowedFee: drawPointer(t, "max token", same)})
		}
		r.Policy = policy
		return r, enforce.Stellar{Fee: drawPointer(t, "fee", same), Payments: drawPayments(t), Balance: balance, Cost: cost}
	}
}

func violationsOf(t *rapid.T, r *relayer.Relayer, tx enforce.Transaction) []enforce.Violation {
	err := enforce.Check(r, tx)
	refused, ok := errors.AsType[*enforce.Error](err)
	if err == nil {
		return nil
	}
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	return refused.Violations
}

// withPolicy returns the relayer with a changed copy of its policy.
func withPolicy(r *relayer.Relayer, change func(policy reflect.Value)) *relayer.Relayer {
	policy := reflect.New(reflect.TypeOf(r.Policy).Elem())
	policy.Elem().Set(reflect.ValueOf(r.Policy).Elem())
	change(policy.Elem())
	changed := *r
	changed.Policy = policy.Interface().(relayer.Policy)
	return &changed
}

// Without a field of its policy, a relayer has the same violations, or fewer. The strategy of
// Solana has a default, so its absence is a value.
func TestEnforce_RemovedFieldAddsNoViolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, tx := drawChecked(t)
		before := violationsOf(t, r, tx)
		for i := range reflect.TypeOf(r.Policy).Elem().NumField() {
			name := reflect.TypeOf(r.Policy).Elem().Field(i).Name
			if r.NetworkType == relayer.Solana && name == "FeePaymentStrategy" {
				continue
			}
			rest := before
			for _, v := range violationsOf(t, withPolicy(r, func(policy reflect.Value) { policy.Field(i).SetZero() }), tx) {
				at := slices.Index(rest, v)
				if at < 0 {
					t.Fatalf("without %s: %v is new, after %v", name, v, before)
				}
				rest = rest[at+1:]
			}
		}
	})
}

// If the value of a violation becomes an element of the list, or the limit, then this violation
// is gone, and all others remain.
func TestEnforce_RepairedRuleRemovesItsViolations(t *testing.T) {
	repaired := make(map[string]bool)
	rapid.Check(t, func(t *rapid.T) {
		r, tx := drawChecked(t)
		before := violationsOf(t, r, tx)
		for _, v := range before {
			changed, changedTx := repair(t, r, tx, v)
			if changed == nil {
				continue
			}
			// A limit is raised for other payments in the token too.
			want := slices.DeleteFunc(slices.Clone(before), func(other enforce.Violation) bool {
				return other == v || other.Field == v.Field && v.Code == enforce.AboveMaximum && other.Value < v.Value
			})
			got := violationsOf(t, changed, changedTx)
			isSame := func(a, b enforce.Violation) bool { return a.Field == b.Field && a.Code == b.Code && a.Value == b.Value }
			if !slices.EqualFunc(got, want, isSame) {
				t.Fatalf("after the repair of %v: %v, want %v", v, got, want)
			}
			repaired[fmt.Sprint(r.NetworkType, " ", strings.Split(v.Field, "[")[0], " ", v.Code)] = true
		}
	})
	if len(repaired) < 14 {
		t.Errorf("repaired only %d kinds of violation: %v", len(repaired), repaired)
	}
}

// fields of policies have the Go names of the fields that a limit or a list is in.
var fields = map[string]string{"allowed_accounts": "AllowedAccounts", "allowed_programs": "AllowedPrograms", "disallowed_accounts": "DisallowedAccounts",
	"whitelist_receivers": "WhitelistReceivers", "gas_price_cap": "GasPriceCap", "min_balance": "MinBalance", "max_fee": "MaxFee",
	"max_allowed_fee_lamports": "MaxAllowedFeeLamports", "max_signatures": "MaxSignatures", "max_tx_data_size": "MaxTxDataSize"}

// repair returns the relayer or the transaction without the violation, or nil if no limit and no
// list does that: for what is missing or unknown, a creation, and a balance below 0.
func repair(t *rapid.T, r *relayer.Relayer, tx enforce.Transaction, v enforce.Violation) (*relayer.Relayer, enforce.Transaction) {
	name := strings.TrimPrefix(v.Field, "policies.")
	n, err := strconv.ParseUint(v.Value, 10, 64)
	isNumber := err == nil
	switch {
	case v.Code == enforce.Paused:
		changed := *r
		changed.Paused = false
		return &changed, tx
	case name == "fee_payment_strategy" && v.Code == enforce.BelowMinimum:
		return r, withRequired(tx, n)
	case name == "allowed_tokens" && v.Code == enforce.NotListed:
		return withPolicy(r, func(policy reflect.Value) {
			tokens := policy.FieldByName("AllowedTokens")
			added := reflect.New(tokens.Type().Elem()).Elem()
			added.Field(0).SetString(v.Value)
			copied := reflect.AppendSlice(reflect.MakeSlice(tokens.Type(), 0, tokens.Len()+1), tokens)
			tokens.Set(reflect.Append(copied, added))
		}), tx
	case strings.HasSuffix(name, "].max_allowed_fee"):
		index := int(name[len("allowed_tokens[")] - '0')
		return withPolicy(r, func(policy reflect.Value) {
			tokens := policy.FieldByName("AllowedTokens")
			copied := reflect.AppendSlice(reflect.MakeSlice(tokens.Type(), 0, tokens.Len()), tokens)
			copied.Index(index).FieldByName("MaxAllowedFee").Set(reflect.ValueOf(&n))
			tokens.Set(copied)
		}), tx
	case v.Code == enforce.NotListed && v.Value != "":
		return withPolicy(r, func(policy reflect.Value) {
			list := policy.FieldByName(fields[name])
			list.Set(reflect.ValueOf(append(slices.Clone(list.Interface().([]string)), v.Value)))
		}), tx
	case v.Code == enforce.Listed:
		return withPolicy(r, func(policy reflect.Value) {
			list := policy.FieldByName(fields[name])
			rest := slices.DeleteFunc(slices.Clone(list.Interface().([]string)), func(text string) bool { return text == v.Value })
			list.Set(reflect.ValueOf(append(rest, "another"))) // an empty list would limit nothing
		}), tx
	case isNumber && (v.Code == enforce.AboveMaximum || v.Code == enforce.BelowMinimum && hasCost(tx)):
		return withPolicy(r, func(policy reflect.Value) {
			field := policy.FieldByName(fields[name])
			limit := reflect.New(field.Type().Elem())
			if field.Type() == reflect.TypeFor[*relayer.Amount]() {
				limit = reflect.ValueOf(new(asAmount(n)))
			} else {
				limit.Elem().SetInt(int64(n))
			}
			field.Set(limit)
		}), tx
	case v.Code == enforce.AboveMaximum:
		t.Fatalf("%v has no number", v)
	}
	return nil, nil
}

// withRequired returns the transaction with another required amount of its first payment.
func withRequired(tx enforce.Transaction, required uint64) enforce.Transaction {
	change := func(payments []enforce.Payment) []enforce.Payment {
		payments = slices.Clone(payments)
		payments[0].Required = &required
		return payments
	}
	if solana, ok := tx.(enforce.Solana); ok {
		solana.Payments = change(solana.Payments)
		return solana
	}
	stellar := tx.(enforce.Stellar)
	stellar.Payments = change(stellar.Payments)
	return stellar
}

// hasCost reports whether the balance after the transaction is known.
func hasCost(tx enforce.Transaction) bool { return !reflect.ValueOf(tx).FieldByName("Cost").IsNil() }
