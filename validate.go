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

// structRules checks the validate tags. There is one, built once and never
// changed: registration is not safe beside validation, and the cache of parsed
// tags is worth sharing.
var structRules = sync.OnceValue(newStructRules)

func newStructRules() *validator.Validate {
	rules := validator.New(validator.WithRequiredStructEnabled())
	rules.RegisterTagNameFunc(jsonName)
	for tag, holds := range map[string]func(text string) bool{
		"relayer_id": isID,
		"text":       func(text string) bool { return strictjson.TextProblem(text) == "" },
		"rpc_url":    func(text string) bool { return rpcURLProblem(text) == "" },
	} {
		mustRegister(rules, tag, func(field validator.FieldLevel) bool { return holds(field.Field().String()) })
	}
	mustRegister(rules, "finite", func(field validator.FieldLevel) bool { return isFinite(field.Field().Float()) })
	return rules
}

// mustRegister panics where the tag is empty or reserved, which is a slip in
// the lines above and shows in every test.
func mustRegister(rules *validator.Validate, tag string, rule validator.Func) {
	if err := rules.RegisterValidation(tag, rule); err != nil {
		panic(err)
	}
}

func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// checkRules adds every rule of its validate tags that input breaks to found.
// Input is a pointer to a struct.
func checkRules(input any, found *problems) {
	if found.Full() {
		return
	}
	var broken validator.ValidationErrors
	if !errors.As(structRules().Struct(input), &broken) {
		return
	}
	for _, rule := range broken {
		_, path, _ := strings.Cut(rule.Namespace(), ".")
		found.Add(path, ruleMessage(rule))
	}
}

// ruleMessage says what the field must be, in words for whoever sent it.
func ruleMessage(rule validator.FieldError) string {
	switch rule.Tag() {
	case "required":
		return "must not be empty"
	case "relayer_id":
		return "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"
	case "oneof":
		return "must be one of " + strings.Join(strings.Fields(rule.Param()), ", ")
	case "gte":
		return "must be " + rule.Param() + " or more"
	case "lte":
		return "must be at most " + rule.Param()
	case "finite":
		return "must be a finite number"
	case "text":
		return strictjson.TextProblem(reflect.ValueOf(rule.Value()).String())
	case "rpc_url":
		return rpcURLProblem(reflect.ValueOf(rule.Value()).String())
	case "excluded_with":
		return "must not be given beside classic"
	default:
		return "breaks the rule " + rule.Tag()
	}
}

const idAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-"

// isID reports whether a relayer can have the id.
func isID(id string) bool {
	if len(id) == 0 || len(id) > MaxIDLength {
		return false
	}
	return strings.Trim(id, idAlphabet) == ""
}

func isFinite(number float64) bool { return !math.IsNaN(number) && !math.IsInf(number, 0) }
