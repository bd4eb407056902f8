package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/spf13/cobra"
	"golang.org/x/text/language"
	texts "golang.org/x/text/message"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
)

// rules holds the flags that determine which relayers are valid.
type rules struct {
	signersFile      string
	networkRules     bool
	exclusiveSigners bool
	rpcHosts         string
	rpcPublicOnly    bool
	settingsSchema   string
}

func (r *rules) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.signersFile, "signers", "", "JSON `file` of the signers that exist, with addresses")
	flags.BoolVar(&r.networkRules, "network-rules", false, "check addresses, assets and schedules of networks")
	flags.BoolVar(&r.exclusiveSigners, "exclusive-signers", false, "allow each signer one relayer per network")
	flags.StringVar(&r.settingsSchema, "settings-schema", "", "`file` with the JSON Schema of settings of relayers")
	flags.StringVar(&r.rpcHosts, "rpc-hosts", "", "`hosts` of RPC URLs, such as *.example.org,10.0.0.0/8")
	flags.BoolVar(&r.rpcPublicOnly, "rpc-public-only", false, "refuse private hosts that --rpc-hosts does not list")
}

// managerOptions returns the options except that of the signers.
func (r rules) managerOptions() (options []relayer.Option, err error) {
	if r.networkRules {
		options = append(options, relayer.WithNetworkRules())
	}
	if r.exclusiveSigners {
		options = append(options, relayer.WithExclusiveSigners())
	}
	if r.rpcHosts != "" || r.rpcPublicOnly {
		policy, err := r.rpcPolicy()
		if err != nil {
			return nil, err
		}
		options = append(options, relayer.WithRPCPolicy(policy))
	}
	if r.settingsSchema != "" {
		rule, err := settingsRule(r.settingsSchema)
		if err != nil {
			return nil, err
		}
		options = append(options, rule)
	}
	return options, nil
}

// rpcPolicy returns the policy of --rpc-hosts and --rpc-public-only.
func (r rules) rpcPolicy() (rpcguard.Policy, error) {
	policy := rpcguard.Policy{PublicOnly: r.rpcPublicOnly}
	if r.rpcHosts == "" {
		return policy, nil
	}
	policy.AllowedHosts = []string{}
	for text := range strings.SplitSeq(r.rpcHosts, ",") {
		text = strings.TrimSpace(text)
		network, err := parseNetwork(text)
		switch {
		case err == nil:
			policy.AllowedAddresses = append(policy.AllowedAddresses, network)
		case strings.ContainsAny(text, "@:/="): // it may be a URL with a secret
			return policy, errors.New("--rpc-hosts must be a comma-separated list of host names and networks, such as rpc.example.com,*.example.org,10.0.0.0/8")
		default:
			policy.AllowedHosts = append(policy.AllowedHosts, text)
		}
	}
	return policy, nil
}

// signers maps the ID of each signer to its addresses.
type signers map[string]map[relayer.NetworkType]string

func readSigners(file string) (known signers, err error) {
	const form = `a JSON object, such as {"treasury":{"evm":"0x…"}}`
	data, err := readFile("--signers", file, "create it as "+form)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &known); err != nil || known == nil {
		return nil, fmt.Errorf("--signers: %s: must be %s: %w", file, form, err)
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		for networkType, address := range known[id] {
			if err := checkAddress(networkType, address); err != nil {
				return nil, fmt.Errorf("--signers: %s: signer %q: %s is not an address of the network type %q: %w", file, id, address, networkType, err)
			}
		}
	}
	return known, nil
}

// checkAddress applies the network rules to an address.
func checkAddress(networkType relayer.NetworkType, address string) error {
	request := relayer.CreateRequest{Name: "any", Network: "any", NetworkType: networkType, SignerID: "any"}
	resolve := func(context.Context, relayer.CreateRequest) (string, error) { return address, nil }
	return request.Validate(context.Background(), relayer.WithNetworkRules(), relayer.WithAddressResolver(resolve))
}

// openSigners returns the resolver of [relayer.WithAddressResolver]. A signer without an address
// for a network type cannot sign for it.
func (s *server) openSigners(ctx context.Context) (relayer.Option, error) {
	var current atomic.Pointer[signers]
	err := s.reloading(ctx, "--signers", func(context.Context) error {
		known, err := readSigners(s.signersFile)
		if err == nil {
			current.Store(&known)
		}
		return err
	}, s.signersFile)
	return relayer.WithAddressResolver(func(_ context.Context, req relayer.CreateRequest) (string, error) {
		address := (*current.Load())[req.SignerID][req.NetworkType]
		if address == "" {
			return "", relayer.ErrUnknownSigner
		}
		return address, nil
	}), err
}

// settingsRule returns the option that checks new and changed settings by the JSON Schema of the
// file.
func settingsRule(file string) (option relayer.Option, err error) {
	const flag = "--settings-schema"
	data, err := readFile(flag, file, "create it as a JSON Schema")
	if err != nil {
		return option, err
	}
	schema, err := compileSchema(data)
	if err != nil {
		return option, fmt.Errorf("%s: %s: %w", flag, file, err)
	}
	return relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, changed *relayer.Relayer) error {
		if changed == nil || changed.Settings == nil || old != nil && bytes.Equal(old.Settings, changed.Settings) {
			return nil
		}
		return settingsError(schema, changed.Settings)
	}), nil
}

// noLoader is a [jsonschema.URLLoader]: a schema is one file.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("the schema must not refer to other documents")
}

func compileSchema(data []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("must be a JSON Schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	const name = "https://relayerd.invalid/settings"
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// settingsError returns a [*relayer.ValidationError] with every problem of settings.
func settingsError(schema *jsonschema.Schema, settings []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(settings))
	if err != nil {
		return err
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(schema.Validate(value), &invalid) {
		return nil
	}
	found := &relayer.ValidationError{}
	addSchemaProblems(found, value, invalid)
	return found
}

// addSchemaProblems adds what the schema refuses, with the causes in place of what they cause.
func addSchemaProblems(found *relayer.ValidationError, value any, invalid *jsonschema.ValidationError) {
	path := settingsPath(value, invalid.InstanceLocation)
	add := func(field, text string) {
		problem := relayer.FieldError{Field: field, Message: text}
		if !slices.Contains(found.Fields, problem) {
			found.Fields = append(found.Fields, problem)
		}
	}
	switch refused := invalid.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range refused.Properties {
			add(path+"."+name, "is not a known field")
		}
	case *kind.Required:
		for _, name := range refused.Missing {
			add(path+"."+name, "is required")
		}
	default:
		if len(invalid.Causes) == 0 {
			add(path, "does not match the schema of this server: "+refused.LocalizedString(texts.NewPrinter(language.English)))
		}
	}
	for _, cause := range invalid.Causes {
		addSchemaProblems(found, value, cause)
	}
}

// settingsPath returns the path of a field of settings.
func settingsPath(value any, location []string) string {
	path := "settings"
	for _, name := range location {
		switch parent := value.(type) {
		case []any:
			path += "[" + name + "]"
			i, _ := strconv.Atoi(name) // it is the index of an element
			value = parent[i]
		case map[string]any:
			path += "." + name
			value = parent[name]
		}
	}
	return path
}
