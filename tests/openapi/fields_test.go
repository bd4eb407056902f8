package openapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// A policy field must be added to two schemas of the document, in requests and in
// responses.
func TestDocument_PolicyFields(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal(served(t), &document); err != nil {
		t.Fatal(err)
	}
	for policy, schemas := range map[reflect.Type][]string{
		reflect.TypeFor[relayer.EVMPolicy]():           {"RelayerEvmPolicy", "EvmPolicyResponse"},
		reflect.TypeFor[relayer.SolanaPolicy]():        {"RelayerSolanaPolicy", "SolanaPolicyResponse"},
		reflect.TypeFor[relayer.SolanaAllowedToken]():  {"SolanaAllowedTokensPolicy", "SolanaAllowedTokensPolicyResponse"},
		reflect.TypeFor[relayer.StellarPolicy]():       {"RelayerStellarPolicy", "StellarPolicyResponse"},
		reflect.TypeFor[relayer.StellarAllowedToken](): {"StellarAllowedTokensPolicy", "StellarAllowedTokensPolicyResponse"},
	} {
		for _, schema := range schemas {
			described := slices.Sorted(maps.Keys(document.Components.Schemas[schema].Properties))
			if fields := jsonFields(policy); !slices.Equal(described, fields) {
				t.Errorf("schema %s has %q, and %v has %q", schema, described, policy, fields)
			}
		}
	}
}

// jsonFields returns the sorted JSON names of the fields of a struct.
func jsonFields(structType reflect.Type) []string {
	var names []string
	for _, field := range reflect.VisibleFields(structType) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
