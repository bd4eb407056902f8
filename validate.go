package relayer

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"

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

func isFinite(number float64) bool { return !math.IsNaN(number) && !math.IsInf(number, 0) }
