package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// form is where a schema is used. The schema of a request is closed, and null stands for an
// optional member that is omitted. The schema of a response allows members of later versions.
type form bool

const (
	request  form = false
	response form = true
)

// typeSchema names the schemas of a Go type. A type without a schema for responses has the same
// in both.
type typeSchema struct {
	goType            reflect.Type
	request, response string
}

var typeSchemas = []typeSchema{
	{reflect.TypeFor[relayer.RPCConfig](), "RpcConfig", "RpcConfigResponse"},
	{reflect.TypeFor[relayer.EVMPolicy](), "RelayerEvmPolicy", "EvmPolicyResponse"},
	{reflect.TypeFor[relayer.SolanaPolicy](), "RelayerSolanaPolicy", "SolanaPolicyResponse"},
	{reflect.TypeFor[relayer.SolanaAllowedToken](), "SolanaAllowedTokensPolicy", "SolanaAllowedTokensPolicyResponse"},
	{reflect.TypeFor[relayer.TokenSwapConfig](), "TokenSwapConfig", "TokenSwapConfigResponse"},
	{reflect.TypeFor[relayer.SolanaSwapConfig](), "RelayerSolanaSwapConfig", "RelayerSolanaSwapConfigResponse"},
	{reflect.TypeFor[relayer.JupiterSwapOptions](), "JupiterSwapOptions", "JupiterSwapOptionsResponse"},
	{reflect.TypeFor[relayer.StellarPolicy](), "RelayerStellarPolicy", "StellarPolicyResponse"},
	{reflect.TypeFor[relayer.StellarAllowedToken](), "StellarAllowedTokensPolicy", "StellarAllowedTokensPolicyResponse"},
	{reflect.TypeFor[relayer.StellarTokenMetadata](), "StellarTokenMetadata", "StellarTokenMetadataResponse"},
	{reflect.TypeFor[relayer.StellarClassicAsset](), "StellarClassicAsset", ""},
	{reflect.TypeFor[relayer.StellarContractToken](), "StellarContractToken", ""},
	{reflect.TypeFor[relayer.StellarSwapConfig](), "RelayerStellarSwapConfig", "RelayerStellarSwapConfigResponse"},
}

// writtenSchemas are the types whose schemas are in fixed.json, because their JSON form is not
// that of their Go type.
var writtenSchemas = []typeSchema{
	{reflect.TypeFor[relayer.Amount](), "WeiInput", "Wei"},
	{reflect.TypeFor[relayer.StellarTokenKind](), "StellarTokenKind", "StellarTokenKindResponse"},
	{reflect.TypeFor[relayer.DisabledReason](), "DisabledReason", ""},
	{reflect.TypeFor[map[string]string](), "Labels", ""},
	{reflect.TypeFor[json.RawMessage](), "Settings", ""},
	{reflect.TypeFor[map[string]relayer.Secret](), "EndpointHeaders", ""},
}

func (s typeSchema) name(f form) string {
	if f == response && s.response != "" {
		return s.response
	}
	return s.request
}

func ref(schema string) object { return obj("$ref", "#/components/schemas/"+schema) }

// types makes the schemas of the Go types of a relayer, from their fields, tags and comments.
type types struct {
	source  *source
	schemas object // in the order in which they are needed
}

func (t *types) add(name string, schema object) { t.schemas = t.schemas.with(name, schema) }

// addAll adds the schemas of all types, and those of a relayer for each network type.
func (t *types) addAll() error {
	for _, s := range typeSchemas {
		for _, f := range []form{request, response} {
			schema, err := t.structSchema(s.goType, f)
			if err != nil {
				return err
			}
			t.add(s.name(f), schema)
			if s.response == "" {
				break
			}
		}
	}
	return t.addRelayer()
}

func (t *types) structSchema(goType reflect.Type, f form) (object, error) {
	text := t.source.types[goType.Name()]
	schema := obj("type", "object", "description", text)
	if f == response {
		schema = schema.with("description", text+" Fields that are not set are omitted.")
	}
	var required []string
	var properties object
	for _, field := range reflect.VisibleFields(goType) {
		name := jsonNameOf(field)
		property, err := t.property(goType, field, f)
		if err != nil {
			return nil, err
		}
		properties = properties.with(name, property)
		if isRequired(goType, field, f) {
			required = append(required, name)
		}
	}
	if required != nil {
		schema = schema.with("required", required)
	}
	schema = schema.with("properties", properties)
	if f == request {
		schema = schema.with("additionalProperties", false)
	}
	return schema, nil
}

func jsonNameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// isRequired reports whether an object must have a member. A response has every member that the
// encoder does not omit.
func isRequired(goType reflect.Type, field reflect.StructField, f form) bool {
	if f == response && goType == reflect.TypeFor[relayer.SolanaPolicy]() && field.Name == "FeePaymentStrategy" {
		return true // a stored relayer has the default
	}
	if strings.Contains(field.Tag.Get("json"), ",omit") {
		return false
	}
	return f == response || !has(field.Tag.Get("wire"), "optional") && field.Type.Kind() != reflect.Pointer
}

// has reports whether a tag has one of its words.
func has(tag, word string) bool { return slices.Contains(strings.Split(tag, ","), word) }

// property returns the schema of a member with its description.
func (t *types) property(goType reflect.Type, field reflect.StructField, f form) (object, error) {
	schema, err := t.value(field.Type, field.Tag, f)
	if err != nil {
		return nil, fmt.Errorf("%s.%s: %w", goType.Name(), field.Name, err)
	}
	text := t.source.text(goType.Name(), jsonNameOf(field))
	if text == "" {
		return nil, fmt.Errorf("%s.%s: the Go field has no comment", goType.Name(), field.Name)
	}
	if f == request && !isRequired(goType, field, f) {
		schema = orNull(schema)
	}
	return schema.with("description", text).merge(details[typeName(goType, f)+"."+jsonNameOf(field)]), nil
}

// details are what tags and comments do not say.
var details = map[string]object{
	"RpcConfig.weight": obj("default", relayer.DefaultRPCWeight),
	"RpcConfig.url": obj("description", "An absolute http, https, ws or wss URL with a host, without spaces and control characters. "+
		"The host must not be a known cloud metadata service or the unspecified address, and has no percent-encoded ASCII. "+
		"A host whose last label is a number must be an IPv4 address. A port is from 1 to 65535. "+
		"The URL may contain a key: responses show it masked."),
	"RpcConfigResponse.url": obj("description", "The scheme, host and port of the URL. User information is removed, and a path, query or fragment beyond a bare `/` "+
		"is replaced by `/***`. A label of the host that looks like a key (20 or more letters and digits, with at least one of each, and not one of "+
		"the last two labels) is replaced by `***`. It is the full URL only with `rpc_urls=full`.", "examples", []string{"https://eth-sepolia.example/***"}),
}

func typeName(goType reflect.Type, f form) string {
	for _, s := range typeSchemas {
		if s.goType == goType {
			return s.name(f)
		}
	}
	return goType.Name()
}

func orNull(schema object) object {
	if name, isPlain := schema.get("type").(string); isPlain {
		return schema.with("type", []string{name, "null"})
	}
	return obj("anyOf", []object{schema, obj("type", "null")})
}

const noNUL = `^[^\x00]*$`

// value returns the schema of a value with the rules of a tag.
func (t *types) value(goType reflect.Type, tag reflect.StructTag, f form) (object, error) {
	if goType.Kind() == reflect.Pointer {
		return t.value(goType.Elem(), tag, f)
	}
	for _, s := range slices.Concat(typeSchemas, writtenSchemas) {
		if s.goType == goType {
			return ref(s.name(f)), nil
		}
	}
	rules := tag.Get("validate")
	if goType.Kind() == reflect.Slice {
		_, element, _ := strings.Cut(rules, "dive,")
		items, err := t.value(goType.Elem(), reflect.StructTag(`validate:"`+element+`"`), f)
		array := obj("type", "array", "items", items)
		if has(rules, "list") {
			array = array.with("maxItems", 10_000) // strictjson.MaxElements, which this module cannot import
		}
		return array, err
	}
	if has(rules, "relayer_id") && f == response {
		return ref("RelayerId"), nil
	}
	for rule := range strings.SplitSeq(rules, ",") {
		if values, found := strings.CutPrefix(rule, "oneof="); found {
			t.addEnum(goType, strings.Fields(values))
			return ref(goType.Name()), nil
		}
	}
	if goType == reflect.TypeFor[relayer.RPCURL]() {
		return obj("type", "string", "format", "iri", "pattern", `^([Hh][Tt][Tt][Pp]|[Ww][Ss])[Ss]?://[^/?#]`), nil
	}
	switch goType.Kind() {
	case reflect.String:
		return text(tag), nil
	case reflect.Bool:
		return obj("type", "boolean"), nil
	case reflect.Float64:
		return number(rules), nil
	}
	return integer(goType.Kind())
}

func text(tag reflect.StructTag) object {
	schema := obj("type", "string")
	rules := tag.Get("validate")
	if has(rules, "relayer_id") {
		return schema.with("pattern", `^[A-Za-z0-9_-]{1,64}$`).with("maxLength", 64)
	}
	if has(rules, "required") || has(tag.Get("wire"), "nonempty") {
		schema = schema.with("minLength", 1)
	}
	if has(rules, "text") {
		schema = schema.with("pattern", noNUL)
	}
	return schema
}

func number(rules string) object {
	schema := obj("type", "number", "format", "double")
	for rule := range strings.SplitSeq(rules, ",") {
		if least, found := strings.CutPrefix(rule, "gte="); found {
			schema = schema.with("minimum", json.Number(least))
		}
		if most, found := strings.CutPrefix(rule, "lte="); found {
			schema = schema.with("maximum", json.Number(most))
		}
	}
	return schema
}

// integer returns the schema of a whole number: none of a relayer is negative.
func integer(kind reflect.Kind) (object, error) {
	most := map[reflect.Kind]json.Number{
		reflect.Uint8: "255", reflect.Uint32: "4294967295", reflect.Int32: "2147483647",
		reflect.Int64: "9223372036854775807", reflect.Uint64: "18446744073709551615",
	}[kind]
	if most == "" {
		return nil, fmt.Errorf("the type %s has no schema", kind)
	}
	return obj("type", "integer", "format", kind.String(), "minimum", 0, "maximum", most), nil
}

func (t *types) addEnum(goType reflect.Type, values []string) {
	t.add(goType.Name(), obj("type", "string", "enum", values, "description", t.source.types[goType.Name()]))
}

// addRelayer adds the schemas of a create, a patch and a response, for each network type.
func (t *types) addRelayer() error {
	goType := reflect.TypeFor[relayer.Relayer]()
	var patch, creates, responses object
	for _, networkType := range relayer.NetworkTypes() {
		name := strings.ToUpper(string(networkType[:1])) + string(networkType[1:])
		create, answer := "Create"+name+"RelayerRequest", name+"RelayerResponse"
		creates = creates.with(string(networkType), "#/components/schemas/"+create)
		responses = responses.with(string(networkType), "#/components/schemas/"+answer)
		of := obj("network_type", obj("type", "string", "const", networkType))
		for _, f := range []form{request, response} {
			members, required, err := t.relayerMembers(goType, f, of.with("policies", policySchema(networkType, f)))
			if err != nil {
				return err
			}
			schema := obj("type", "object", "required", required, "properties", members)
			if f == request {
				t.add(create, obj("description", "The relayer to create, of the network type "+string(networkType)+
					". Null means omitted for a member that is not required.").merge(schema).with("additionalProperties", false))
				patch = members
				continue
			}
			t.add(answer, obj("description", "A relayer of the network type "+string(networkType)+".").merge(schema).merge(obj(
				"if", obj("properties", obj("system_disabled", obj("const", true))),
				"then", obj("required", []string{"disabled_reason"}),
				"else", obj("not", obj("required", []string{"disabled_reason"})))))
		}
	}
	t.add("CreateRelayerRequest", union("The relayer to create. `network_type` selects the schema.", creates))
	t.add("RelayerResponse", union("A relayer. `network_type` selects the schema.", responses))
	t.addPatch(goType, patch)
	return nil
}

func policySchema(networkType relayer.NetworkType, f form) object {
	for _, s := range typeSchemas {
		if strings.EqualFold(s.goType.Name(), string(networkType)+"Policy") {
			return ref(s.name(f))
		}
	}
	panic("no policy of " + networkType)
}

func union(description string, mapping object) object {
	var schemas []object
	for _, m := range mapping {
		schemas = append(schemas, obj("$ref", m.value))
	}
	return obj("description", description, "oneOf", schemas, "discriminator", obj("propertyName", "network_type", "mapping", mapping))
}

// relayerMembers returns the members of a relayer. fixed has the schemas that depend on the
// network type.
func (t *types) relayerMembers(goType reflect.Type, f form, fixed object) (members object, required []string, err error) {
	for _, field := range reflect.VisibleFields(goType) {
		name := jsonNameOf(field)
		if name == "-" || f == request && has(field.Tag.Get("wire"), "readonly") {
			continue
		}
		var property object
		if schema, found := fixed.get(name).(object); found {
			if f == request && !isRequired(goType, field, f) {
				schema = orNull(schema)
			}
			property = schema.with("description", t.source.text(goType.Name(), name))
		} else if property, err = t.property(goType, field, f); err != nil {
			return nil, nil, err
		}
		members = members.with(name, property)
		if isRequired(goType, field, f) {
			required = append(required, name)
		}
	}
	return members, required, nil
}

// addPatch adds the schema of a patch: the members of a create that can be changed.
func (t *types) addPatch(goType reflect.Type, create object) {
	var members object
	for _, field := range reflect.VisibleFields(goType) {
		name := jsonNameOf(field)
		if property, found := create.get(name).(object); found && !has(field.Tag.Get("wire"), "initial") {
			members = members.with(name, property)
		}
	}
	var policies []object
	for _, networkType := range relayer.NetworkTypes() {
		policies = append(policies, policySchema(networkType, request))
	}
	t.add("UpdateRelayerRequest", obj("type", "object",
		"description", "A JSON Merge Patch (RFC 7396) of the members that can be changed. All other members are unknown, those of responses too. "+
			"Null clears a member. Objects are merged, and arrays are replaced. A masked URL from a response is invalid. The result is validated as a whole.",
		"properties", members.
			with("policies", obj("anyOf", append(policies, obj("type", "null")),
				"description", "Merged field by field. Null clears one field, or all of them. The `network_type` of the relayer selects the schema.")).
			with("labels", obj("type", []string{"object", "null"}, "additionalProperties", obj("type", []string{"string", "null"}, "maxLength", 128),
				"description", "Merged key by key. Null removes one label, or all of them.")),
		"additionalProperties", false))
}
