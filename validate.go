package relayer

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"

	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// structRules checks the validate tags. It is built once and never changed:
// registration is not safe during validation.
var structRules = sync.OnceValue(newStructRules)

func newStructRules() *validator.Validate {
	rules := validator.New(validator.WithRequiredStructEnabled())
	rules.RegisterTagNameFunc(jsonName)
	for tag, holds := range map[string]func(text string) bool{
		"relayer_id":   IsID,
		"network_type": func(text string) bool { return networkTypeProblem(text) == "" },
		"text":         func(text string) bool { return strictjson.TextProblem(text) == "" },
		"rpc_url":      func(text string) bool { return rpcURLProblem(text) == "" },
	} {
		mustRegister(rules, tag, func(field validator.FieldLevel) bool { return holds(field.Field().String()) })
	}
	mustRegister(rules, "finite", func(field validator.FieldLevel) bool { return isFinite(field.Field().Float()) })
	return rules
}

// mustRegister panics if the tag is empty or reserved, which is a programming
// error in newStructRules.
func mustRegister(rules *validator.Validate, tag string, rule validator.Func) {
	if err := rules.RegisterValidation(tag, rule); err != nil {
		panic(err)
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// checkRules adds a problem for every validate tag that input, a pointer to a
// struct, violates.
func checkRules(input any, found *problems) {
	if found.Full() {
		return
	}
	var violations validator.ValidationErrors
	if !errors.As(structRules().Struct(input), &violations) {
		return
	}
	for _, violation := range violations {
		_, path, _ := strings.Cut(violation.Namespace(), ".")
		// A field without a name in JSON is a problem of the object that has it.
		found.Report(strings.TrimSuffix(path, ".-"), ruleCodes[violation.Tag()], ruleMessage(violation))
	}
}

// ruleCodes has the codes of tags.
var ruleCodes = map[string]string{
	"required": strictjson.Required, "oneof": "not_allowed", "network_type": "not_allowed", "gte": strictjson.OutOfRange, "lte": strictjson.OutOfRange, "finite": strictjson.OutOfRange,
}

// ruleMessage returns what the field must be, for the sender of the request.
func ruleMessage(violation validator.FieldError) string {
	switch violation.Tag() {
	case "required":
		return "must not be empty"
	case "relayer_id":
		return "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"
	case "network_type":
		return networkTypeProblem(reflect.ValueOf(violation.Value()).String())
	case "oneof":
		return "must be one of " + strings.Join(strings.Fields(violation.Param()), ", ")
	case "gte":
		return "must be " + violation.Param() + " or more"
	case "lte":
		return "must be at most " + violation.Param()
	case "finite":
		return "must be a finite number"
	case "text":
		return strictjson.TextProblem(reflect.ValueOf(violation.Value()).String())
	case "rpc_url":
		return rpcURLProblem(reflect.ValueOf(violation.Value()).String())
	case "isdefault":
		return "must be a kind that this version supports"
	case "excluded_with":
		return "must not be given together with classic"
	default:
		return "violates the rule " + violation.Tag()
	}
}

// IsID reports whether id can be the ID of a relayer: 1 to 64 of A–Z a–z 0–9 _ and -. The
// ID of an [Operation] may be any other text.
func IsID(id string) bool {
	if id == "" || len(id) > limits.ID {
		return false
	}
	for i := range len(id) {
		if !isIDByte(id[i]) {
			return false
		}
	}
	return true
}

func isIDByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

func isFinite(number float64) bool { return !math.IsNaN(number) && !math.IsInf(number, 0) }

// maxProblems bounds the size of a [ValidationError] and the work of filling it.
const maxProblems = 1000

// problems collects what is wrong with one input.
type problems struct {
	list   []FieldError // one more than maxProblems if there are more
	blamed map[string]bool
}

// Add is Report without a code.
func (p *problems) Add(field, message string) { p.Report(field, "", message) }

// Report adds a problem of an existing field. A later problem of the same field, or
// of a field below it, is a consequence of the first and is dropped.
func (p *problems) Report(field, code, message string) {
	if p.has(field) || p.Full() {
		return
	}
	if p.blamed == nil {
		p.blamed = make(map[string]bool)
	}
	p.blamed[field] = true
	p.list = append(p.list, FieldError{Field: field, Code: code, Message: message})
}

// ReportUnknown adds a problem of a member whose name is chosen by the client, so that it must
// not be mistaken for the path of a field.
func (p *problems) ReportUnknown(member, code, message string) {
	if !p.Full() {
		p.list = append(p.list, FieldError{Field: member, Code: code, Message: message})
	}
}

// Full reports whether further problems are dropped.
func (p *problems) Full() bool { return len(p.list) > maxProblems }

// has reports whether the field, or one that contains it, has a problem.
func (p *problems) has(field string) bool {
	for end := len(field); end > 0; end = strings.LastIndexAny(field[:end], ".[") {
		if p.blamed[field[:end]] {
			return true
		}
	}
	return false
}

// err returns a [*ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	fields := p.list
	if p.Full() {
		fields = append(fields[:maxProblems:maxProblems], FieldError{Message: fmt.Sprintf("only the first %d problems are listed", maxProblems)})
	}
	return &ValidationError{Fields: fields}
}
