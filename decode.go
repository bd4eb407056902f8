package relayer

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// decodeCreate reads a create request and adds every problem to found. It returns nil if data is
// not a JSON object, so that its fields are unknown.
func decodeCreate(data []byte, found *problems) *Relayer {
	if problem := strictjson.Check(data); problem != "" {
		found.Add("", "the body "+problem)
		return nil
	}
	r := new(Relayer)
	newDecoder(found).decodeRelayer(data, r)
	return r
}

// applyPatch changes a relayer by a merge patch, and modifies nothing that the relayer refers to.
func applyPatch(r *Relayer, patch []byte, found *problems) {
	d := newDecoder(found)
	d.IsPatch = true
	d.Decode(patch, r)
	if d.policies == nil {
		return
	}
	policy := newPolicy(r.NetworkType)
	if policy != nil { // checkChanged refuses a change of an unknown policy
		strictjson.CopyFields(policy, r.Policy)
	}
	r.Policy = d.decodePolicies(policy)
}

func (d *decoder) decodeRelayer(data []byte, r *Relayer) {
	d.Decode(data, r)
	r.Policy = d.decodePolicies(newPolicy(r.NetworkType))
}

// decoder decodes strict JSON with a policy block in it.
type decoder struct {
	strictjson.Decoder

	// policies is decoded last: members of an object have no order, and the
	// network type selects the shape of the policy.
	policies *strictjson.Value
}

func newDecoder(found *problems) *decoder {
	d := new(decoder)
	d.Problems, d.Hook = &found.Problems, d.hook
	return d
}

func (d *decoder) hook(v strictjson.Value, target any) bool {
	switch target := target.(type) {
	case *Amount:
		decodeAmount(v, target)
	case *StellarTokenKind:
		decodeTokenKind(v, target)
	case *Policy:
		block := v // so that v is on the heap only here
		d.policies = &block
	default:
		return false
	}
	return true
}

// decodePolicies decodes the policy block of the document decoded before into policy. A
// block of an unknown network type has no shape to check it against: policy is nil.
func (d *decoder) decodePolicies(policy Policy) Policy {
	if d.policies == nil {
		return nil
	}
	if d.policies.First() != '{' {
		d.policies.Report(strictjson.WrongType, "must be an object")
		return nil
	}
	if policy != nil {
		d.policies.Object(policy)
	}
	return policy
}

func decodeAmount(v strictjson.Value, target *Amount) {
	amount, problem := amountFromJSON(v.Raw())
	switch problem {
	case "":
		*target = amount
	case digitsMessage:
		v.Report(strictjson.WrongType, problem)
	default:
		v.Report(strictjson.OutOfRange, problem)
	}
}

func decodeTokenKind(v strictjson.Value, kind *StellarTokenKind) {
	if v.First() == '{' {
		v.Object(kind)
	}
	if text, _ := v.Text(); text != nativeKind && (kind.Classic == nil) == (kind.Contract == nil) {
		v.Report("", `must be "native", {"classic":…} or {"contract":…}`)
	}
}

// MarshalUnmasked returns the JSON body of the HTTP request that creates the relayer, as
// [Documents.Create] reads it. Unlike the JSON of json.Marshal it has the RPC URLs and their
// headers in full: it is for a server, not for a log. Amounts above 2^64-1 are strings of digits,
// as OpenZeppelin Relayer requires. It returns a [*ValidationError] if the policy is of another
// network type, a text outside of headers is not UTF-8, or a value cannot be JSON.
func (r CreateRequest) MarshalUnmasked() ([]byte, error) {
	if problem := policyProblem(r.Policy, r.NetworkType); problem != "" {
		return nil, invalid("policies", problem) // the JSON does not show it: MinBalance is in wei or in lamports
	}
	if isNil(r.Policy) {
		r.Policy = nil
	}
	masked, err := strictjson.Encode(r)
	if err != nil || !utf8.Valid(masked) { // JSON of the caller is encoded as it is
		// The error of the encoder may quote a URL.
		return nil, cmp.Or(r.Validate(context.Background()), errors.New("relayer: the request has a value that cannot be encoded as JSON"))
	}
	all, found := new(problems), new(problems) // the encoder replaces what is not UTF-8 without an error
	checkRules(structRules(), newRelayer(r), "", ruleMessage, all)
	checkLabels(r.Labels, all)
	for _, problem := range all.All() {
		if problem.Message == strictjson.NotUTF8Message {
			found.Report(problem.Field, problem.Code, problem.Message)
		}
	}
	urls, err := strictjson.Encode(fullOf(r.CustomRPCURLs))
	if err = cmp.Or(found.err(), err); err != nil {
		return nil, err
	}
	return strictjson.ReplaceMember(withDigits(masked, r.Policy), urlsMember, urls), nil
}

// withDigits returns the body of a request with amounts above 2^64-1 as strings of digits: the public
// system accepts no larger number.
func withDigits(body []byte, policy Policy) []byte {
	evm, ok := policy.(*EVMPolicy)
	if !ok {
		return body
	}
	members, _ := strictjson.Members(body)
	policies := []byte(members["policies"])
	for name, amount := range map[string]*Amount{"gas_price_cap": evm.GasPriceCap, "min_balance": evm.MinBalance} {
		if amount != nil && !amount.Big().IsUint64() {
			policies = strictjson.ReplaceMember(policies, name, strconv.AppendQuote(nil, amount.String()))
		}
	}
	return strictjson.ReplaceMember(body, "policies", policies)
}

// UnmarshalJSON reads a request, which must be strict JSON, as for [Documents.Create]. An element
// of custom_rpc_urls may also be a string, the URL, as in configuration files. If members are
// missing, unknown or malformed, the error is a [*ValidationError] that lists the problems of the
// values too. Without such problems, the values are not checked: call [CreateRequest.Validate].
func (r *CreateRequest) UnmarshalJSON(data []byte) error {
	found := new(problems)
	if problem := strictjson.Check(data); problem != "" {
		found.Add("", problem)
		return found.err()
	}
	d := newDecoder(found)
	d.Hook = func(v strictjson.Value, target any) bool {
		endpoint, isEndpoint := target.(*RPCConfig)
		if !isEndpoint || v.First() != '"' {
			return d.hook(v, target)
		}
		url, problem := v.Text()
		if problem != "" {
			v.Report("", problem)
		}
		endpoint.URL = RPCURL(url)
		return true
	}
	var decoded Relayer
	d.decodeRelayer(data, &decoded)
	if found.err() == nil {
		strictjson.CopyFields(r, &decoded)
		return nil
	}
	defaults, _ := newSettings(nil) // only an option can be invalid
	_, err := defaults.prepare(context.Background(), &decoded, found)
	return err
}
