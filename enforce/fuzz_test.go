package enforce_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/enforce"
)

// policies has a pointer to a policy of each type, or nil.
func policies(kind uint8) relayer.Policy {
	return []relayer.Policy{new(relayer.EVMPolicy), new(relayer.SolanaPolicy), new(relayer.StellarPolicy), new(relayer.UnknownPolicy),
		(*relayer.EVMPolicy)(nil), (*relayer.SolanaPolicy)(nil), (*relayer.StellarPolicy)(nil), (*relayer.UnknownPolicy)(nil), nil}[kind%9]
}

// decoded returns the transaction in JSON, in part if the JSON is wrong, a pointer to it, or a nil
// pointer, of each type, or nil.
func decoded(kind uint8, data []byte) enforce.Transaction {
	if kind %= 10; kind == 9 {
		return nil
	}
	pointer := []enforce.Transaction{new(enforce.EVM), new(enforce.Solana), new(enforce.Stellar)}[kind%3]
	_ = json.Unmarshal(data, pointer)
	switch value := reflect.ValueOf(pointer); kind / 3 {
	case 0:
		return value.Elem().Interface().(enforce.Transaction)
	case 1:
		return pointer
	default:
		return reflect.Zero(value.Type()).Interface().(enforce.Transaction)
	}
}

// FuzzCheck checks any relayer and transaction, whatever is nil. The error is bounded and
// printable, and the same each time.
func FuzzCheck(f *testing.F) {
	kinds := map[byte]uint8{'C': 0, 'E': 0, 'S': 1, 'X': 2}
	for _, v := range vectors {
		tx, err := json.Marshal(v.tx)
		if err != nil {
			f.Fatal(err)
		}
		kind := kinds[v.id[0]]
		f.Add(string(networks[v.id[0]]), "r", v.id == "C1", "", kind, []byte(v.policy), kind, tx)
	}
	for kind := range uint8(10) {
		f.Add("evm", "\x00", true, "\xff", kind, []byte("{}"), kind, []byte("{}"))
	}
	f.Fuzz(func(t *testing.T, network, id string, isPaused bool, reason string, policyKind uint8, policy []byte, txKind uint8, tx []byte) {
		r := &relayer.Relayer{ID: id, NetworkType: relayer.NetworkType(network), Paused: isPaused, SystemDisabled: reason != "", Policy: policies(policyKind)}
		if policyKind%9 < 4 {
			_ = json.Unmarshal(policy, r.Policy)
		}
		if len(reason) > 1 {
			r.DisabledReason = &relayer.DisabledReason{Type: relayer.DisabledReasonType(reason)}
		}
		transaction := decoded(txKind, tx)
		_ = enforce.Check(nil, transaction)
		err := enforce.Check(r, transaction)
		if again := enforce.Check(r, transaction); !reflect.DeepEqual(again, err) {
			t.Fatalf("first %v, then %v", err, again)
		}
		if err == nil {
			if isPaused || reason != "" || transaction == nil {
				t.Fatal("permitted")
			}
			return
		}
		refused, ok := errors.AsType[*enforce.Error](err)
		if !ok || len(refused.Violations) == 0 || len(refused.Violations) > 1000 {
			t.Fatalf("the error is %v", err)
		}
		texts := []string{refused.RelayerID}
		for _, v := range refused.Violations {
			if v.Field == "" || v.Code == "" {
				t.Errorf("a violation is %v", v)
			}
			texts = append(texts, v.Field, string(v.Code), v.Value, v.Limit)
		}
		for _, text := range texts {
			if !isBounded(text) {
				t.Errorf("a text is %q", text)
			}
		}
		if text := err.Error(); strings.ContainsAny(text, "\n\r\x1b") || len(text) > 11*600 {
			t.Errorf("the text is %q", text)
		}
		encoded, encodeErr := json.Marshal(err)
		var again enforce.Error
		if decodeErr := json.Unmarshal(encoded, &again); encodeErr != nil || decodeErr != nil || !reflect.DeepEqual(&again, err) {
			t.Errorf("the JSON form is %s, %v, %v", encoded, encodeErr, decodeErr)
		}
	})
}
