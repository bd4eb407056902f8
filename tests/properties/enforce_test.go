package properties

import (
	"encoding/json"
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

// draw returns a value in which every field is random: few texts and small numbers, so that
// rules permit and refuse.
func draw[T any](t *rapid.T) T {
	var value T
	fill(t, "", reflect.ValueOf(&value).Elem())
	return value
}

func fill(t *rapid.T, name string, value reflect.Value) {
	switch {
	case value.Type() == reflect.TypeFor[*relayer.StellarTokenMetadata](): // limits nothing
	case value.Type() == reflect.TypeFor[relayer.Amount]():
		value.Set(reflect.ValueOf(relayer.MustParseAmount(strconv.Itoa(rapid.IntRange(0, 5).Draw(t, name)))))
	case value.Type() == reflect.TypeFor[relayer.FeePaymentStrategy]():
		value.Set(reflect.ValueOf(rapid.SampledFrom([]relayer.FeePaymentStrategy{relayer.FeePaidByUser, relayer.FeePaidByRelayer}).Draw(t, name)))
	case value.Kind() == reflect.Pointer:
		if rapid.IntRange(0, 3).Draw(t, name+" is set") > 0 {
			value.Set(reflect.New(value.Type().Elem()))
			fill(t, name, value.Elem())
		}
	case value.Kind() == reflect.Struct:
		for field, value := range value.Fields() {
			fill(t, field.Name, value)
		}
	case value.Kind() == reflect.Slice:
		if length := rapid.IntRange(-1, 3).Draw(t, "length of "+name); length >= 0 {
			value.Set(reflect.MakeSlice(value.Type(), length, length))
		}
		for i := range value.Len() {
			fill(t, name, value.Index(i))
		}
	case value.Kind() == reflect.String:
		value.SetString(rapid.SampledFrom([]string{"", "a", "A", "b", "c", "XLM", enforce.Native}).Draw(t, name))
	case value.Kind() == reflect.Bool:
		value.SetBool(rapid.Bool().Draw(t, name))
	case value.CanUint():
		value.SetUint(rapid.Uint64Range(0, 5).Draw(t, name))
	case value.CanInt():
		value.SetInt(rapid.Int64Range(0, 5).Draw(t, name))
	}
}

// drawChecked returns a relayer and a transaction of its network type.
func drawChecked(t *rapid.T) (r *relayer.Relayer, tx enforce.Transaction) {
	r = &relayer.Relayer{ID: "r", Paused: rapid.Bool().Draw(t, "paused"), NetworkType: rapid.SampledFrom(relayer.NetworkTypes()).Draw(t, "type")}
	switch r.NetworkType {
	case relayer.EVM:
		r.Policy, tx = new(draw[relayer.EVMPolicy](t)), draw[enforce.EVM](t)
	case relayer.Solana:
		r.Policy, tx = new(draw[relayer.SolanaPolicy](t)), draw[enforce.Solana](t)
	default:
		r.Policy, tx = new(draw[relayer.StellarPolicy](t)), draw[enforce.Stellar](t)
	}
	return r, tx
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

// membersOf returns the JSON form of a policy. It has the fields that are set.
func membersOf(t *rapid.T, policy relayer.Policy) map[string]any {
	members := make(map[string]any)
	if err := json.Unmarshal(must(json.Marshal(policy))(t), &members); err != nil {
		t.Fatal(err)
	}
	return members
}

// withPolicy returns the relayer with a policy of the same type, with other fields.
func withPolicy(t *rapid.T, r *relayer.Relayer, members map[string]any) *relayer.Relayer {
	changed := *r
	changed.Policy = reflect.New(reflect.TypeOf(r.Policy).Elem()).Interface().(relayer.Policy)
	if err := json.Unmarshal(must(json.Marshal(members))(t), changed.Policy); err != nil {
		t.Fatal(err)
	}
	return &changed
}

// Without a field of its policy, a relayer has the same violations, or fewer. The strategy of
// Solana has a default, so its absence is a value.
func TestEnforce_RemovedFieldAddsNoViolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, tx := drawChecked(t)
		before := violationsOf(t, r, tx)
		for name := range membersOf(t, r.Policy) {
			if r.NetworkType == relayer.Solana && name == "fee_payment_strategy" {
				continue
			}
			members := membersOf(t, r.Policy)
			delete(members, name)
			rest := before
			for _, v := range violationsOf(t, withPolicy(t, r, members), tx) {
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
	check := func(t *rapid.T) {
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
	}
	for round := 0; round < 20 && len(repaired) < 14; round++ { // the few checks of a short run draw too few kinds
		rapid.Check(t, check)
	}
	if len(repaired) < 14 {
		t.Errorf("repaired only %d kinds of violation: %v", len(repaired), repaired)
	}
}

// repair returns the relayer or the transaction without the violation, or nil if no limit and no
// list does that: for what is missing or unknown, a creation, and a balance below 0.
func repair(t *rapid.T, r *relayer.Relayer, tx enforce.Transaction, v enforce.Violation) (*relayer.Relayer, enforce.Transaction) {
	name, index, isToken := strings.Cut(strings.TrimPrefix(v.Field, "policies."), "[")
	number, err := strconv.ParseUint(v.Value, 10, 64)
	members := membersOf(t, r.Policy)
	list, _ := members[name].([]any)
	switch {
	case v.Code == enforce.Paused:
		changed := *r
		changed.Paused = false
		return &changed, tx
	case name == "fee_payment_strategy" && v.Code == enforce.BelowMinimum:
		return r, withRequired(tx, number)
	case name == "allowed_tokens" && v.Code == enforce.NotListed:
		members[name] = append(list, map[string]any{"mint": v.Value, "asset": v.Value})
	case v.Code == enforce.NotListed && (v.Value != "" || name != "whitelist_receivers"):
		members[name] = append(list, v.Value)
	case v.Code == enforce.Listed:
		members[name] = append(slices.DeleteFunc(list, func(text any) bool { return text == v.Value }), "another") // an empty list would limit nothing
	case isToken:
		list[index[0]-'0'].(map[string]any)["max_allowed_fee"] = number
	case err == nil && (v.Code == enforce.AboveMaximum || v.Code == enforce.BelowMinimum && hasCost(tx)):
		members[name] = number
	case v.Code == enforce.AboveMaximum:
		t.Fatalf("%v has no number", v)
	default:
		return nil, nil
	}
	return withPolicy(t, r, members), tx
}

// withRequired returns the transaction with another required amount of its first payment.
func withRequired(tx enforce.Transaction, required uint64) enforce.Transaction {
	changed := reflect.New(reflect.TypeOf(tx)).Elem()
	changed.Set(reflect.ValueOf(tx))
	payments := slices.Clone(changed.FieldByName("Payments").Interface().([]enforce.Payment))
	payments[0].Required = &required
	changed.FieldByName("Payments").Set(reflect.ValueOf(payments))
	return changed.Interface().(enforce.Transaction)
}

// hasCost reports whether the balance after the transaction is known.
func hasCost(tx enforce.Transaction) bool { return !reflect.ValueOf(tx).FieldByName("Cost").IsNil() }
