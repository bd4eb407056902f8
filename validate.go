package relayer

import (
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-playground/validator/v10"
	"github.com/google/uuid"

	"github.com/go-relayer/relayer/internal/chain"
	"github.com/go-relayer/relayer/internal/cron"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/rpcguard"
)

// The validators check the validate tags, and the network tags. They are built once and never
// changed: registration is not safe during validation.
var (
	structRules  = sync.OnceValue(func() *validator.Validate { return newRules("validate") })
	networkRules = sync.OnceValue(func() *validator.Validate { return newRules("network") })
)

// textRules has the tags of texts, each with a function that returns why a text violates it, or
// "".
var textRules = map[string]func(text string) (problem string){
	"relayer_id":       idProblem,
	"network_type":     networkTypeProblem,
	"text":             strictjson.TextProblem,
	"rpc_url":          rpcURLProblem,
	"evm_address":      chain.EVMAddressProblem,
	"solana_address":   chain.SolanaAddressProblem,
	"stellar_account":  chain.StellarAccountProblem,
	"stellar_asset":    chain.StellarAssetProblem,
	"stellar_code":     chain.StellarCodeProblem,
	"stellar_contract": chain.StellarContractProblem,
	"cron_schedule":    cron.Problem,
}

func rpcURLProblem(text string) string {
	if err := (rpcguard.Policy{}).Check(text); err != nil {
		return err.Error()
	}
	return ""
}

func newRules(tagName string) *validator.Validate {
	rules := map[string]validator.Func{
		"finite":     isFinite,
		"percentage": func(f validator.FieldLevel) bool { return f.Field().Float() >= 0 && f.Field().Float() <= 100 }, // false for NaN
		// Unlike excluded_with it permits empty lists.
		"excludes": func(f validator.FieldLevel) bool {
			return f.Field().Len() == 0 || reflect.Indirect(f.Parent()).FieldByName(f.Param()).Len() == 0
		},
	}
	for tag, problem := range textRules {
		rules[tag] = func(f validator.FieldLevel) bool { return problem(f.Field().String()) == "" }
	}
	v := validator.New(validator.WithRequiredStructEnabled(), validator.WithTagNameFuncBlankOmit())
	v.SetTagName(tagName)
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		if f.Anonymous {
			return jsonName(f) // without a name in JSON its fields belong to the outer struct
		}
		return cmp.Or(jsonName(f), f.Name)
	})
	for tag, rule := range rules {
		if err := v.RegisterValidation(tag, rule, true); err != nil {
			panic(err) // the tag is empty or reserved, which is an error in the table
		}
	}
	// The validator keeps all problems before their number is limited.
	v.RegisterAlias("list", fmt.Sprintf("max=%d", strictjson.MaxElements))
	v.RegisterAlias("solana_swap", "excluded_if=FeePaymentStrategy relayer") // user is the default
	v.RegisterAlias("stellar_swap", "excluded_unless=FeePaymentStrategy user")
	v.RegisterAlias("jupiter", "excluded_unless=Strategy jupiter-swap")
	v.RegisterAlias("with_level", "required_with=PriorityLevel")
	v.RegisterAlias("with_fee", "required_with=PriorityFeeMaxLamports")
	return v
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// checkRules adds a problem for each field of input, a pointer to a struct, that violates a rule
// of its tag: the first such rule. prefix precedes the paths.
func checkRules(rules *validator.Validate, input any, prefix string, message func(validator.FieldError) string, found *problems) {
	if found.Full() {
		return
	}
	violations, _ := errors.AsType[validator.ValidationErrors](rules.Struct(input))
	for _, violation := range violations {
		path := strings.TrimPrefix(violation.Namespace(), reflect.TypeOf(input).Elem().Name()+".")
		// A field without a name in JSON is a problem of the object that has it.
		found.Report(strings.TrimSuffix(prefix+withKeys(path), ".-"), ruleTexts[violation.Tag()].code, message(violation))
	}
}

// withKeys returns the path with the keys of maps, except numbers, as members: the validator
// writes them like indices.
func withKeys(path string) string {
	for i := range path {
		if path[i] != '[' {
			continue
		}
		if key, after, _ := strings.Cut(path[i+1:], "]"); strings.Trim(key, "0123456789") != "" {
			return path[:i] + "." + key + withKeys(after)
		}
	}
	return path
}

// ruleTexts has the code of a tag, and what the field must be, with {} for the parameter.
var ruleTexts = map[string]struct{ code, message string }{
	"required":      {strictjson.Required, "must not be empty"},
	"oneof":         {strictjson.NotAllowed, "must be one of {}"},
	"network_type":  {strictjson.NotAllowed, ""},
	"gte":           {strictjson.OutOfRange, "must be {} or more"},
	"lte":           {strictjson.OutOfRange, "must be at most {}"},
	"finite":        {strictjson.OutOfRange, "must be a finite number, and not -0"},
	"percentage":    {strictjson.OutOfRange, "must be from 0 to 100"},
	"min":           {"", "must name at least one strategy"},
	"max":           {"", "must be at most {} characters"},
	"list":          {strictjson.OutOfRange, fmt.Sprintf("must have at most %d elements", strictjson.MaxElements)},
	"excludes":      {"", "must not be set together with allowed_accounts"},
	"with_level":    {"", "must be set if priority_level is set"},
	"with_fee":      {"", "must be set if priority_fee_max_lamports is set"},
	"isdefault":     {"", "must be a kind that this version supports"},
	"excluded_with": {"", "must not be given together with classic"},
	"solana_swap":   {"", "must not be set unless fee_payment_strategy is user"},
	"stellar_swap":  {"", "must not be set unless fee_payment_strategy is user"},
	"jupiter":       {"", "must not be set unless strategy is jupiter-swap"},
}

// ruleMessage returns what the field must be, for the sender of the request.
func ruleMessage(violation validator.FieldError) string {
	if problem, isText := textRules[violation.Tag()]; isText {
		return problem(reflect.ValueOf(violation.Value()).String())
	}
	parameters := strings.Join(strings.Fields(violation.Param()), ", ")
	return strings.ReplaceAll(ruleTexts[violation.Tag()].message, "{}", parameters)
}

// isFinite reports whether JSON can have the number. It has no NaN and no infinity, and its -0
// is read as 0.
func isFinite(f validator.FieldLevel) bool {
	number := f.Field().Float()
	return !math.IsNaN(number) && !math.IsInf(number, 0) && (number != 0 || !math.Signbit(number))
}

func (s *settings) check(r *Relayer, found *problems) {
	checkRules(structRules(), r, "", ruleMessage, found)
	checkLabels(r.Labels, found)
	checkHeaders(r.CustomRPCURLs, found)
	s.checkSettings(r.Settings, found)
	if s.rpcPolicy != nil {
		checkURLs(*s.rpcPolicy, r.CustomRPCURLs, found)
	}
	if problem := policyProblem(r.Policy, r.NetworkType); problem != "" {
		found.Add("policies", problem)
	} else if s.networkRules && !isNil(r.Policy) {
		checkRules(networkRules(), r.Policy, "policies.", ruleMessage, found)
	}
}

func checkURLs(policy rpcguard.Policy, endpoints []RPCConfig, found *problems) {
	for i, endpoint := range endpoints {
		text := endpoint.URL.Unmasked()
		if endpoint.URL.IsMasked() {
			text = endpoint.URL.String() // without the mark of hidden user information
			if strings.Contains(text, mask.Hidden+".") {
				continue // the full host was checked when it was stored
			}
		}
		if err := policy.Check(text); err != nil {
			found.Add(fmt.Sprintf("custom_rpc_urls[%d].url", i), err.Error())
		}
	}
}

// checkSize returns an error if a record exceeds the maximum size and is larger than before.
func (s *settings) checkSize(rec, before Record) error {
	size := len(rec.Document) + len(rec.Private)
	if size <= s.maxRelayerSize || size <= len(before.Document)+len(before.Private) {
		return nil
	}
	return invalidAs("", strictjson.OutOfRange, fmt.Sprintf("the relayer must be at most %d bytes as stored, not %d", s.maxRelayerSize, size))
}

func checkDisabled(r *Relayer, found *problems) {
	switch hasReason := r.DisabledReason != nil; {
	case r.SystemDisabled && !hasReason:
		found.Add(reasonMember, "must be set while system_disabled is true")
	case !r.SystemDisabled && hasReason:
		found.Add(reasonMember, "must not be set while system_disabled is false")
	}
}

// checkMasks rejects masked URLs: those with a mark, and the masked form of a stored URL,
// which may have none. They would replace the full URL. It also rejects masked headers. An
// endpoint that is stored in this form is kept.
func checkMasks(r, stored *Relayer, found *problems) {
	left, masks := make(map[RPCURL][]RPCConfig), make(map[string]bool)
	for _, endpoint := range stored.CustomRPCURLs {
		left[endpoint.URL] = append(left[endpoint.URL], endpoint)
		if masked := endpoint.URL.String(); masked != endpoint.URL.Unmasked() {
			masks[canonicalURL(masked)] = true
		}
	}
	for i, endpoint := range r.CustomRPCURLs {
		var kept RPCConfig
		if same := left[endpoint.URL]; len(same) > 0 {
			kept, left[endpoint.URL] = same[0], same[1:]
		} else if endpoint.URL.IsMasked() || masks[canonicalURL(endpoint.URL.Unmasked())] {
			found.Add(fmt.Sprintf("custom_rpc_urls[%d].url", i), "must be the full URL, not the masked one that responses show")
		}
		for name, value := range endpoint.Headers {
			if value.IsMasked() && kept.Headers[name] != value {
				found.ReportUnknown(headerPath(i, name), "", "must be the full value, not the masked one that responses show")
			}
		}
	}
}

// The limits of the headers of an endpoint.
const (
	maxHeaders     = 16
	maxHeadersSize = 4 << 10
)

// ownHeaders are the fields of a request that the connection uses, in lower case.
var ownHeaders = []string{"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"}

func headerPath(i int, name string) string {
	return strictjson.Join(fmt.Sprintf("custom_rpc_urls[%d].headers", i), name)
}

func checkHeaders(endpoints []RPCConfig, found *problems) {
	for i, endpoint := range endpoints {
		if len(endpoint.Headers) == 0 {
			continue
		}
		size, given := 0, make(map[string]bool)
		for _, name := range slices.Sorted(maps.Keys(endpoint.Headers)) {
			value, lower := endpoint.Headers[name].Unmasked(), strings.ToLower(name)
			size += len(name) + len(value)
			code, problem := "", headerProblem(name, value)
			if given[lower] {
				code, problem = strictjson.Duplicate, "must not be given more than once, in any letter case"
			}
			if problem != "" {
				found.ReportUnknown(headerPath(i, name), code, problem)
			}
			given[lower] = true
		}
		if len(endpoint.Headers) > maxHeaders || size > maxHeadersSize {
			found.Report(fmt.Sprintf("custom_rpc_urls[%d].headers", i), strictjson.OutOfRange, fmt.Sprintf("must be at most %d, of %d bytes together", maxHeaders, maxHeadersSize))
		}
	}
}

var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)
)

func headerProblem(name, value string) string {
	switch {
	case !headerName.MatchString(name):
		return "must have the name of an HTTP field"
	case slices.Contains(ownHeaders, strings.ToLower(name)):
		return "must not be a field that the connection uses"
	case !headerValue.MatchString(value):
		return "must be visible ASCII, with spaces only between other characters"
	}
	return ""
}

// The limits of labels.
const (
	maxLabels          = 32
	maxLabelValueRunes = 128
)

func checkLabels(labels map[string]string, found *problems) {
	if len(labels) > maxLabels {
		found.Report("labels", strictjson.OutOfRange, fmt.Sprintf("must have at most %d labels", maxLabels))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		for _, problem := range [...]string{labelKeyProblem(key), labelValueProblem(labels[key])} {
			if problem != "" {
				// The key is chosen by the sender, and may look like a path.
				found.ReportUnknown(strictjson.Join("labels", key), "", problem)
			}
		}
	}
}

var labelKey = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?$`)

func labelKeyProblem(key string) string {
	return problemIf(!labelKey.MatchString(key), "must have a key of 1 to 63 characters of A-Z a-z 0-9 _ . - / that begins and ends with a letter or digit")
}

func labelValueProblem(value string) string {
	control := problemIf(strings.ContainsFunc(value, unicode.IsControl), "must not contain control characters")
	return cmp.Or(textProblem(value, maxLabelValueRunes), control)
}

// textProblem returns why a text with a maximum number of characters cannot be stored, or "".
func textProblem(text string, most int) string {
	if utf8.RuneCountInString(text) > most {
		return fmt.Sprintf("must be at most %d characters", most)
	}
	return strictjson.TextProblem(text)
}

// WithSettings registers the type of [Relayer.Settings], a struct. A create, update or patch then
// returns a [*ValidationError] with the problems of the settings, each with its path, such as
// settings.max_in_flight: values of other types, members that T does not have, and the first
// violated rule of the validate tag of each field (see github.com/go-playground/validator). If an
// UnmarshalJSON or UnmarshalText fails, the rules are not checked. T is decoded by encoding/json,
// with names that match exactly.
//
// Settings remain optional: a relayer without settings is valid. Stored settings are not checked
// until the relayer is changed; pause, resume, disable, enable and delete are always possible.
// Without this option only the rules of [Relayer.Settings] apply.
func WithSettings[T any]() Option {
	kind := reflect.TypeFor[T]().Kind()
	err := errorIf(kind != reflect.Struct, "the type of the settings must be a struct, not a "+kind.String())
	if err == nil {
		err = tagsError(new(T))
	}
	check := func(raw json.RawMessage, found *problems) { checkType(raw, new(T), found) }
	return Option{func(s *settings) { s.checkType = check }, err}
}

// tagsError returns an error if the validate tags of a struct have an unknown rule, for which the
// validator panics.
func tagsError(zero any) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("relayer: the validate tags of the settings: %v", cause)
		}
	}()
	_ = structRules().Struct(zero)
	return nil
}

const (
	settingsMember  = "settings"
	maxSettingsSize = 16 << 10
)

// isOmitted reports whether there are no settings. Null is what encoding/json decodes a null into.
func isOmitted(raw json.RawMessage) bool { return raw == nil || string(raw) == "null" }

// canonicalSettings returns the stored form of valid settings: with sorted names and, outside of
// lists, without members that are null, so a patch has the same result for every client.
func canonicalSettings(raw json.RawMessage) json.RawMessage {
	if isOmitted(raw) {
		return nil
	}
	return strictjson.Canonical(strictjson.MergePatch(nil, raw))
}

// checkSettings reports why settings cannot be stored.
func (s *settings) checkSettings(raw json.RawMessage, found *problems) {
	if isOmitted(raw) {
		return
	}
	if problem := strictjson.Check(raw); problem != "" {
		found.Add(settingsMember, problem)
		return
	}
	d := strictjson.Decoder{Problems: &found.Problems}
	if !d.Member(settingsMember, raw).Free(settingsTextProblem) {
		return
	}
	canonical := canonicalSettings(raw)
	if len(canonical) > maxSettingsSize {
		found.Report(settingsMember, strictjson.OutOfRange, fmt.Sprintf("must be at most %d bytes as stored, not %d", maxSettingsSize, len(canonical)))
	} else if s.checkType != nil {
		s.checkType(canonical, found)
	}
}

// userInformation matches a URL that may have user information. An unescaped password with a
// slash ends the authority early: then what seems to be a port is no number below 70000, and an @
// follows.
var userInformation = regexp.MustCompile(`(?s)://(?:` +
	`[^/?#\s]*@|` +
	`(?:[^[/?#:\s][^/?#:\s]*)?:` + // a user, or a host other than an IPv6 address
	`(?:[0-9]*[^0-9/?#\s]|[7-9][0-9]{4}|[0-9]{6})` + // no port
	`.*@)`)

// settingsTextProblem returns why a text cannot be in settings, or "".
func settingsTextProblem(text string) string {
	return problemIf(userInformation.MatchString(text), "must not be a URL with user information: settings are shown to every reader")
}

// checkType reports what of settings does not fit the type that value points to.
func checkType(raw json.RawMessage, value any, found *problems) {
	before := len(found.All())
	checkShape(settingsMember, raw, reflect.TypeOf(value), found)
	err := json.Unmarshal(raw, value)
	if err != nil && len(found.All()) == before {
		found.Report(settingsMember, strictjson.WrongType, shapeProblem(reflect.TypeOf(value).Elem(), err))
	}
	if _, isDecoded := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !isDecoded {
		return // members after the error are missing
	}
	checkRules(structRules(), value, settingsMember+".", settingsRuleMessage, found)
}

// settingsRuleMessage returns what a value must be, for the sender of the request.
func settingsRuleMessage(violation validator.FieldError) string {
	unit := map[reflect.Kind]string{reflect.String: " characters", reflect.Slice: " elements", reflect.Array: " elements", reflect.Map: " members"}[violation.Kind()]
	switch tag := violation.Tag(); {
	case tag == "required" || tag == "oneof":
		return ruleMessage(violation)
	case tag == "gte" || tag == "min":
		return "must be " + violation.Param() + unit + " or more"
	case tag == "lte" || tag == "max":
		return "must be at most " + violation.Param() + unit
	case violation.Param() != "":
		return fmt.Sprintf("must satisfy the rule %s=%s", tag, violation.Param())
	default:
		return "must satisfy the rule " + tag
	}
}

var (
	jsonDecoder = reflect.TypeFor[json.Unmarshaler]()
	textDecoder = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func hasOwnDecoder(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(jsonDecoder) || reflect.PointerTo(t).Implements(textDecoder)
}

// checkShape reports every member that a Go type does not have, and every value that it cannot
// hold: encoding/json reports the first one only, and no paths of unknown members.
func checkShape(path string, raw []byte, t reflect.Type, found *problems) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch first, kind := raw[0], t.Kind(); {
	case hasOwnDecoder(t):
	case first == '{' && (kind == reflect.Struct || kind == reflect.Map):
		for name, value := range strictjson.InOrder(raw) {
			below, member := strictjson.Join(path, name), memberType(t, name)
			if member == nil {
				found.ReportUnknown(below, strictjson.UnknownField, "is not a known field")
				continue
			}
			checkShape(below, value, member, found)
		}
		return
	case first == '[' && (kind == reflect.Slice || kind == reflect.Array):
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // it is valid JSON
		for i, value := range list {
			checkShape(fmt.Sprintf("%s[%d]", path, i), value, t.Elem(), found)
		}
		return
	}
	if err := json.Unmarshal(raw, reflect.New(t).Interface()); err != nil {
		found.Report(path, strictjson.WrongType, shapeProblem(t, err))
	}
}

// memberType returns the type that encoding/json decodes a member of an object into, or nil.
func memberType(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	var found reflect.StructField // the one that is embedded least
	for _, field := range reflect.VisibleFields(t) {
		tagged, depth := jsonName(field), len(field.Index)
		isMember := tagged == name && tagged != "-" || tagged == "" && field.Name == name && field.IsExported() && !field.Anonymous
		if isMember && (found.Type == nil || depth < len(found.Index)) && !isBelowMember(t, field) {
			found = field
		}
	}
	if strings.Contains(found.Tag.Get("json")+",", ",string,") {
		return reflect.TypeFor[any]() // checked when the whole is decoded
	}
	return found.Type
}

// isBelowMember reports whether an embedded struct that has the field is a member with a name itself.
func isBelowMember(t reflect.Type, field reflect.StructField) bool {
	for depth := range field.Index[1:] {
		if jsonName(t.FieldByIndex(field.Index[:1+depth])) != "" {
			return true
		}
	}
	return false
}

// shapes has what a value of a kind must be.
var shapes = map[reflect.Kind]string{
	reflect.Bool: "must be true or false", reflect.String: "must be a string", reflect.Struct: "must be an object", reflect.Map: "must be an object",
	reflect.Slice: "must be an array", reflect.Array: "must be an array", reflect.Float32: "must be a number", reflect.Float64: "must be a number",
}

// shapeProblem returns what a value must be that a type cannot hold.
func shapeProblem(t reflect.Type, err error) string {
	switch zero := reflect.Zero(t); {
	case hasOwnDecoder(t):
		return "is not valid: " + mask.Text(err.Error())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "must be a string in base64"
	case zero.CanUint(), zero.CanInt():
		sign := problemIf(zero.CanUint(), "of 0 or more, ")
		return fmt.Sprintf("must be a whole number %sof at most %d bits, without a point or an exponent", sign, t.Bits())
	}
	return cmp.Or(shapes[t.Kind()], "has a form that is not supported")
}

// NetworkTypes returns the network types that this version of the package has. Later versions
// may have more.
func NetworkTypes() []NetworkType { return []NetworkType{EVM, Solana, Stellar} }

// networkTypeProblem returns why the text is no known network type, or "".
func networkTypeProblem(text string) string {
	return problemIf(newPolicy(NetworkType(text)) == nil, "must be one of "+string(EVM+", "+Solana+", "+Stellar))
}

// newPolicy returns an empty policy of the network type, or nil if the type is unknown.
func newPolicy(name NetworkType) Policy {
	switch name {
	case EVM:
		return new(EVMPolicy)
	case Solana:
		return new(SolanaPolicy)
	case Stellar:
		return new(StellarPolicy)
	}
	return nil
}

// policyProblem returns why a relayer of the network type cannot have the policy, or "". A type of
// another package implements Policy if it embeds one; its own fields would be lost.
func policyProblem(policy Policy, networkType NetworkType) string {
	own := newPolicy(networkType) // nil is a problem of the network type
	isOther := policy != nil && own != nil && reflect.TypeOf(policy) != reflect.TypeOf(own)
	return problemIf(isOther, "must be the policy of the network type")
}

// Validate returns nil, or a [*ValidationError] with every problem for which a [Manager] with
// these options would reject the request. The size is checked only if all else is valid. Another
// error reports an invalid option or, if all else is valid, a fault of the address resolver.
// Limits of pages have no effect, nor do hooks except [WithAddressResolver]. It does not detect a
// taken ID or signer. It accepts masked RPC URLs and headers: a program may replace them by the
// stored ones before it sends the request.
func (r CreateRequest) Validate(ctx context.Context, options ...Option) error {
	s, err := newSettings(options)
	if err != nil {
		return err
	}
	_, err = s.prepare(ctx, newRelayer(r), new(problems))
	return err
}

// prepare returns the record to store for a new relayer, and sets its ID and address.
func (s *settings) prepare(ctx context.Context, r *Relayer, found *problems) (Record, error) {
	s.check(r, found)
	if s.networkRules { // a name with outer spaces looks like the name without them
		for _, field := range [][2]string{{"network", r.Network}, {"signer_id", r.SignerID}} {
			if strings.TrimSpace(field[1]) != field[1] {
				found.Add(field[0], "must not begin or end with a space")
			}
		}
	}
	address, err := s.addressOf(ctx, r, found)
	if err := cmp.Or(found.err(), err); err != nil {
		return Record{}, err
	}
	r.Address = address
	if r.ID == "" {
		r.ID = uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
	}
	rec, err := s.newRecord(r)
	return rec, cmp.Or(err, s.checkSize(rec, Record{}))
}

// addressOf resolves the address of a relayer, unless its signer or network is invalid.
func (s *settings) addressOf(ctx context.Context, r *Relayer, found *problems) (string, error) {
	if s.resolveAddress == nil || found.Has("signer_id") || found.Has("network") || found.Has("network_type") {
		return "", nil
	}
	var req CreateRequest
	strictjson.CopyFields(&req, r)
	address, err := s.resolveAddress(ctx, req)
	if errors.Is(err, ErrUnknownSigner) {
		found.Add("signer_id", "must be a signer that exists for this network")
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("relayer: resolving the address of a signer: %w", faultError{err})
	}
	problem := problemIf(!addressForm.MatchString(address), "must be at most 256 characters of A-Z a-z 0-9 _ . : and -")
	if check := addressProblems[r.NetworkType]; s.networkRules && check != nil {
		problem = cmp.Or(problem, check(address))
	}
	if problem != "" {
		// It is not a ValidationError, because the client cannot correct it, and
		// does not quote the address, because a wrong one may be a secret.
		return "", errors.New("relayer: the address from the address resolver " + problem)
	}
	return address, nil
}

// addressForm matches what a resolver may return on any network.
var addressForm = regexp.MustCompile(`^[\w.:-]{0,256}$`)

var addressProblems = map[NetworkType]func(address string) (problem string){
	EVM: chain.EVMAddressProblem, Solana: chain.SolanaAddressProblem, Stellar: chain.StellarAccountProblem,
}
