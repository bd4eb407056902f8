package enforce

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error has the reasons why a relayer must not send a transaction. Its JSON form is meant for
// the client that asked for the transaction:
//
//	{"relayer_id":"r","violations":[{"field":"policies.gas_price_cap","code":"above_maximum","value":"31","limit":"30"}]}
type Error struct {
	RelayerID  string      `json:"relayer_id"`
	Violations []Violation `json:"violations"` // at least one, and the first 1,000
}

// Violation is one value that one rule refuses. Its texts are printable and have at most 256
// bytes: a longer text ends with "…", and a text with other characters, or with quotes or
// backslashes, is quoted as in Go.
type Violation struct {
	// Field is the path of the field in the JSON form of a relayer, such as
	// "policies.allowed_tokens[1].max_allowed_fee".
	Field string `json:"field"`

	// Code is the kind of the violation.
	Code Code `json:"code"`

	// Value is the refused value. The constants of [Code] say which value.
	Value string `json:"value,omitempty"`

	// Limit is the limit of a rule that compares numbers: for fee_payment_strategy
	// [Payment.Required], if it is known.
	Limit string `json:"limit,omitempty"`
}

// Code is the kind of a [Violation]. Later versions may add codes.
type Code string

// The codes: what each means, and the Value of a violation with it.
const (
	Paused       Code = "paused"        // the relayer is paused. Value: "true"
	Disabled     Code = "disabled"      // the host has disabled the relayer. Value: the type of the reason, if there is one
	WrongNetwork Code = "wrong_network" // the transaction is of another network type. Value: that type
	Unsupported  Code = "unsupported"   // not known to this version. Value: the network type or strategy; empty for a policy
	Listed       Code = "listed"        // in a list of refused values. Value: the account
	NotListed    Code = "not_listed"    // not in a list of permitted values. Value: the receiver, account, program, mint or asset; empty for a contract creation
	AboveMaximum Code = "above_maximum" // above the limit. Value: the number
	BelowMinimum Code = "below_minimum" // below the limit. Value: the number; for min_balance Balance minus Cost, or Balance if Cost is unknown
	Missing      Code = "missing"       // the transaction lacks what the policy requires. Value: empty
	Unknown      Code = "unknown"       // the engine has not given a value. Value: empty, or the asset of a payment without Required
)

const maxViolations, maxText = 1000, 256 // bytes

// Error returns the first 10 violations.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "enforce: relayer %s must not send the transaction", cmp.Or(e.RelayerID, "without an ID"))
	separator := ": "
	for i, v := range e.Violations {
		if i == 10 {
			fmt.Fprintf(&text, "; and %d more", len(e.Violations)-i)
			break
		}
		text.WriteString(separator + v.Field + " " + string(v.Code))
		if v.Value != "" {
			text.WriteString(" " + v.Value)
		}
		if v.Limit != "" {
			text.WriteString(", limit " + v.Limit)
		}
		separator = "; "
	}
	return text.String()
}

// violations are those that a check has found.
type violations []Violation

func (v *violations) add(field string, code Code, value, limit string) {
	if len(*v) < maxViolations {
		*v = append(*v, Violation{field, code, printable(value), limit})
	}
}

// printable returns a bounded text that cannot forge lines of a log.
func printable(text string) string {
	text = bounded(text)
	if quoted := strconv.Quote(text); len(quoted) != len(text)+len(`""`) { // has an escape
		return bounded(quoted)
	}
	return text
}

func bounded(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
