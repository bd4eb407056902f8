package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	texts "golang.org/x/text/message"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/rpcguard"
)

// openRules adds the rules to the options of the Manager.
func (s *server) openRules(ctx context.Context) error {
	add := func(option relayer.Option) { s.managerOptions = append(s.managerOptions, option) }
	if s.networkRules {
		add(relayer.WithNetworkRules())
	}
	if s.exclusiveSigners {
		add(relayer.WithExclusiveSigners())
	}
	if s.rpcHosts != "" || s.rpcPublicOnly {
		policy := rpcguard.Policy{PublicOnly: s.rpcPublicOnly}
		if s.rpcHosts != "" {
			policy.AllowedHosts = []string{}
			for text := range strings.SplitSeq(s.rpcHosts, ",") {
				text = strings.TrimSpace(text)
				network, err := parseNetwork(text)
				switch {
				case err == nil:
					policy.AllowedAddresses = append(policy.AllowedAddresses, network)
				case strings.ContainsAny(text, "@:/="): // it may be a URL with a secret
					return errors.New("--rpc-hosts must be a comma-separated list of host names and networks, such as rpc.example.com,*.example.org,10.0.0.0/8")
				default:
					policy.AllowedHosts = append(policy.AllowedHosts, text)
				}
			}
		}
		add(relayer.WithRPCPolicy(policy))
	}
	if s.settingsSchema != "" {
		rule, err := settingsRule(s.settingsSchema)
		if err != nil {
			return err
		}
		add(rule)
	}
	if s.signersFile != "" {
		current, err := reloading(ctx, s, "--signers", s.readSigners, s.signersFile)
		if err != nil {
			return err
		}
		// A signer without an address for a network type cannot sign for it.
		add(relayer.WithAddressResolver(func(_ context.Context, req relayer.CreateRequest) (string, error) {
			address := (*current.Load())[req.SignerID][req.NetworkType]
			if address == "" {
				return "", relayer.ErrUnknownSigner
			}
			return address, nil
		}))
	}
	return nil
}

// signers maps the ID of each signer to its addresses.
type signers map[string]map[relayer.NetworkType]string

func (s *server) readSigners(context.Context) (known signers, err error) {
	const form = `a JSON object, such as {"treasury":{"evm":"0x…"}}`
	data, err := readFile("--signers", s.signersFile, "create it as "+form)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &known); err != nil || known == nil {
		return nil, fmt.Errorf("--signers: %s: must be %s: %w", s.signersFile, form, cmp.Or(err, errors.New("it is null")))
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		for networkType, address := range known[id] {
			if err := checkAddress(networkType, address); err != nil {
				return nil, fmt.Errorf("--signers: %s: signer %q: the address of the network type %q is not valid: %w", s.signersFile, id, networkType, err)
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

// noLoader is a [jsonschema.URLLoader]: a schema is one file.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("the schema must not refer to other documents")
}

// settingsRule returns the option that checks new and changed settings by the JSON Schema of the
// file. It reports up to 1,000 problems.
func settingsRule(file string) (option relayer.Option, err error) {
	const flag, name = "--settings-schema", "https://relayerd.invalid/settings"
	data, err := readFile(flag, file, "create it as a JSON Schema")
	if err != nil {
		return option, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return option, fmt.Errorf("%s: %s: must be a JSON Schema: %w", flag, file, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	_ = compiler.AddResource(name, document) // fails for a relative or known name
	schema, err := compiler.Compile(name)
	if err != nil {
		return option, fmt.Errorf("%s: %s: %w", flag, file, err)
	}
	return relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, changed *relayer.Relayer) error {
		if changed == nil || changed.Settings == nil || old != nil && bytes.Equal(old.Settings, changed.Settings) {
			return nil
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(changed.Settings))
		var invalid *jsonschema.ValidationError
		if err != nil || !errors.As(schema.Validate(value), &invalid) {
			return err
		}
		found := &relayer.ValidationError{}
		addSchemaProblems(found, value, invalid)
		return found
	}), nil
}

// The limits of the problems of a request, and of their paths and messages in bytes, bound its
// response: a message of the schema repeats a whole enum.
const (
	maxSchemaProblems = 1000
	maxSchemaText     = 256
)

// addSchemaProblems adds what the schema refuses, with the causes in place of what they cause.
func addSchemaProblems(found *relayer.ValidationError, value any, invalid *jsonschema.ValidationError) {
	path := settingsPath(value, invalid.InstanceLocation)
	shortened := func(text string) string {
		if len(text) <= maxSchemaText {
			return text
		}
		return strings.ToValidUTF8(text[:maxSchemaText], "") + "…"
	}
	add := func(field, text string) {
		problem := relayer.FieldError{Field: shortened(field), Message: shortened(text)}
		if len(found.Fields) > maxSchemaProblems || slices.Contains(found.Fields, problem) {
			return
		}
		if len(found.Fields) == maxSchemaProblems {
			problem = relayer.FieldError{Message: fmt.Sprintf("only the first %d problems are listed", maxSchemaProblems)}
		}
		found.Fields = append(found.Fields, problem)
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
