package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// section is the table of the fields of one object.
type section struct {
	heading string
	goType  string
	request string // schema of a create, or of the object in one
	answer  string // schema of a response, if it has other fields
	patch   string // schema of a patch, for the relayer itself
}

var relayerSections = []section{
	{"## A relayer", "Relayer", "CreateEvmRelayerRequest", "EvmRelayerResponse", "UpdateRelayerRequest"},
	{"### Elements of `custom_rpc_urls`", "RPCConfig", "RpcConfig", "", ""},
	{"### `disabled_reason`", "DisabledReason", "DisableRelayerRequest", "", ""},
}

// objectSections are those of the objects in a policy.
var objectSections = map[relayer.NetworkType][]section{
	relayer.Solana: {
		{"### Elements of `allowed_tokens` (Solana)", "SolanaAllowedToken", "SolanaAllowedTokensPolicy", "", ""},
		{"### `swap_config` (Solana)", "SolanaSwapConfig", "RelayerSolanaSwapConfig", "", ""},
		{"### `jupiter_swap_options`", "JupiterSwapOptions", "JupiterSwapOptions", "", ""},
		{"### `swap_config` of a token (Solana and Stellar)", "TokenSwapConfig", "TokenSwapConfig", "", ""},
	},
	relayer.Stellar: {
		{"### Elements of `allowed_tokens` (Stellar)", "StellarAllowedToken", "StellarAllowedTokensPolicy", "", ""},
		{"### `metadata`", "StellarTokenMetadata", "StellarTokenMetadata", "", ""},
		{"### `classic`", "StellarClassicAsset", "StellarClassicAsset", "", ""},
		{"### `contract`", "StellarContractToken", "StellarContractToken", "", ""},
		{"### `swap_config` (Stellar)", "StellarSwapConfig", "RelayerStellarSwapConfig", "", ""},
	},
}

// sections returns all sections. The policy of the type evm is EVMPolicy, and its schema is
// RelayerEvmPolicy.
func sections(source *source) []section {
	all := slices.Clone(relayerSections)
	for _, networkType := range relayer.NetworkTypes() {
		name := string(networkType)
		for goType := range source.fields {
			if strings.EqualFold(goType, name+"Policy") {
				heading := "## `policies` (" + strings.TrimSuffix(goType, "Policy") + ")"
				all = append(all, section{heading, goType, "Relayer" + strings.ToUpper(name[:1]) + name[1:] + "Policy", "", ""})
			}
		}
		all = append(all, objectSections[networkType]...)
	}
	return all
}

const introduction = `<!-- Generated: go -C tests/reference run . -->

# Reference of a relayer

Every field of a relayer: what it may contain, and what an engine does with it.

The text is that of the doc comments of the Go types, and the values are those of the
[OpenAPI document](../httpapi/openapi.json). The registry checks the values. An engine enforces
what the text says of it, with package [enforce](../enforce). Limits are inclusive: a value equal to a
limit is permitted. Sentences about ` + "`WithNetworkRules`" + ` hold with that option, and with
` + "`relayerd serve --network-rules`" + `. A field that is not required is absent from a response if it is
not set. In a request, ` + "`null`" + ` means not set. Integers may be written as any JSON number whose
value is whole, such as ` + "`1e18`" + `. The maximum size of a relayer is 256 KiB, in all.

Policy fields have no defaults, except ` + "`fee_payment_strategy`" + ` of Solana: a field that is not set
limits nothing, and leaves a choice to the engine. 1 ETH is 10^18 wei, 1 SOL is 10^9 lamports, and
1 XLM is 10^7 stroops.
`

// render returns the page for the repository at root. It is an error if a field has no
// comment, or if the Go type and the schema differ in their fields.
func render(root string) ([]byte, error) {
	source, err := parseSource(root)
	if err != nil {
		return nil, err
	}
	document, err := readSchemas(filepath.Join(root, "httpapi", "openapi.json"))
	if err != nil {
		return nil, err
	}
	page := bytes.NewBufferString(introduction)
	for _, s := range sections(source) {
		if err := s.write(page, source, document); err != nil {
			return nil, err
		}
	}
	return page.Bytes(), nil
}

func (s section) write(page *bytes.Buffer, source *source, document schemas) error {
	fields := source.fields[s.goType]
	properties := maps.Clone(document[s.request].Properties)
	for name, property := range document[s.answer].Properties {
		if _, found := properties[name]; !found {
			properties[name] = property
		}
	}
	if len(fields) == 0 || len(properties) == 0 {
		return fmt.Errorf("%s or its schema %s has no fields", s.goType, s.request)
	}
	fmt.Fprintf(page, "\n%s\n\n%s\n", s.heading, s.columns())
	for _, f := range fields {
		property, found := properties[f.name]
		if !found {
			return fmt.Errorf("%s.%s: no schema has the field", s.goType, f.name)
		}
		delete(properties, f.name)
		if f.text == "" {
			return fmt.Errorf("%s.%s: the Go field has no comment", s.goType, f.name)
		}
		value, err := document.describe(property)
		if err != nil {
			return errors.Join(fmt.Errorf("%s.%s", s.goType, f.name), err)
		}
		fmt.Fprintf(page, "| `%s` | %s | %s%s |\n", f.name, value, s.requests(f.name, document), strings.ReplaceAll(f.text, "|", `\|`))
	}
	if len(properties) > 0 {
		return fmt.Errorf("%s lacks fields of its schema: %v", s.goType, slices.Sorted(maps.Keys(properties)))
	}
	return nil
}

func (s section) columns() string {
	if s.patch == "" {
		return "| field | value | meaning |\n|---|---|---|"
	}
	return "| field | value | create | patch | meaning |\n|---|---|---|---|---|"
}

// requests returns the cells that say whether a create and a patch may have the field.
func (s section) requests(name string, document schemas) string {
	if s.patch == "" {
		if slices.Contains(document[s.request].Required, name) {
			return "**Required.** "
		}
		return ""
	}
	create, patch := "no", "no"
	if _, found := document[s.request].Properties[name]; found {
		create = "optional"
	}
	if slices.Contains(document[s.request].Required, name) {
		create = "**required**"
	}
	if _, found := document[s.patch].Properties[name]; found {
		patch = "yes"
	}
	return create + " | " + patch + " | "
}
