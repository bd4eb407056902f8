package relayer

import (
	"github.com/go-relayer/relayer/internal/strictjson"
)

// decodeCreate reads a create request into a relayer and adds every problem to found. It
// reports false if data is not a JSON object, so that its fields are unknown.
func decodeCreate(data []byte, r *Relayer, found *problems) bool {
	if problem := strictjson.Check(data); problem != "" {
		found.Add("", "the body "+problem)
		return false
	}
	newDecoder(found).decodeRelayer(data, r)
	return true
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
	d.Reporter, d.Hook = found, d.hook
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
		d.policies.ReportAs(strictjson.WrongType, "must be an object")
		return nil
	}
	if policy != nil {
		d.policies.Object(policy)
	}
	return policy
}

// decodeAmount reads a number or a string of decimal digits, as [Amount.UnmarshalJSON]
// does.
func decodeAmount(v strictjson.Value, amount *Amount) {
	if v.First() != '"' {
		v.Number(func(literal string) (problem string) {
			*amount, problem = amountFromLiteral(literal)
			return problem
		})
		return
	}
	text, problem := v.Text()
	if problem == "" {
		*amount, problem = amountFromDigits(text)
	}
	switch problem {
	case "":
	case maxAmountMessage:
		v.ReportAs(strictjson.OutOfRange, problem)
	default:
		v.ReportAs(strictjson.WrongType, problem)
	}
}

func decodeTokenKind(v strictjson.Value, kind *StellarTokenKind) {
	const message = `must be "native", {"classic":…} or {"contract":…}`
	if v.First() == '{' {
		v.Object(kind)
		if (kind.Classic == nil) == (kind.Contract == nil) {
			v.Report(message)
		}
		return
	}
	if text, _ := v.Text(); text != nativeKind {
		v.Report(message)
	}
}
