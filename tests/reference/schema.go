package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// schemas are those of the OpenAPI document, by name.
type schemas map[string]schema

// schema has what the page shows of a schema.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"` // a name, or a list of names
	Format     string            `json:"format"`
	Const      any               `json:"const"`
	Enum       []string          `json:"enum"`
	AnyOf      []schema          `json:"anyOf"`
	Items      *schema           `json:"items"`
	Minimum    json.Number       `json:"minimum"`
	Maximum    json.Number       `json:"maximum"`
	MinLength  int               `json:"minLength"`
	MaxLength  int               `json:"maxLength"`
	Default    any               `json:"default"`
	Required   []string          `json:"required"`
	Properties map[string]schema `json:"properties"`
}

func readSchemas(path string) (schemas, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var document struct {
		Components struct {
			Schemas schemas
		}
	}
	err = json.Unmarshal(content, &document)
	return document.Components.Schemas, err
}

// bounds are shown in place of long numbers.
var bounds = map[string]string{
	"9223372036854775807":  "2^63−1",
	"18446744073709551615": "2^64−1",
	"4294967295":           "2^32−1",
	"2147483647":           "2^31−1",
	"115792089237316195423570985008687907853269984665640564039457584007913129639935": "2^256−1",
}

// named are schemas whose parts have no single type.
var named = map[string]string{
	"WeiInput":         "integer or string of decimal digits, 0 to 2^256−1",
	"StellarTokenKind": "`\"native\"`, `{\"classic\":{…}}` or `{\"contract\":{…}}`",
	"Labels":           "object of strings",
	"Settings":         "object",
	"EndpointHeaders":  "object of strings",
}

// describe returns the type and the range of a value.
func (d schemas) describe(s schema) (string, error) {
	if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
		if text := named[name]; text != "" {
			return text, nil
		}
		return d.describe(d[name])
	}
	if len(s.AnyOf) > 0 {
		parts := slices.DeleteFunc(slices.Clone(s.AnyOf), func(part schema) bool { return part.Type == "null" })
		if len(parts) != 1 {
			return "", errors.New("the schema has several types: describe it in the table of named schemas")
		}
		return d.describe(parts[0])
	}
	switch s.typeName() {
	case "array":
		element, err := d.describe(*s.Items)
		return "array of " + element, err
	case "string":
		return s.describeString(), nil
	case "integer", "number":
		return s.describeNumber(), nil
	case "boolean", "object":
		return s.typeName(), nil
	}
	return "", fmt.Errorf("unknown type %v", s.Type)
}

// typeName returns the type without null.
func (s schema) typeName() string {
	switch types := s.Type.(type) {
	case string:
		return types
	case []any:
		for _, each := range types {
			if name, _ := each.(string); name != "null" {
				return name
			}
		}
	}
	return ""
}

func (s schema) describeString() string {
	switch {
	case s.Const != nil:
		// The schema of each network type has its own constant.
		var types []string
		for _, name := range relayer.NetworkTypes() {
			types = append(types, string(name))
		}
		return schema{Enum: types}.describeString()
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.MaxLength > 0:
		return fmt.Sprintf("string, at most %d characters", s.MaxLength)
	case s.MinLength > 0:
		return "string, not empty"
	}
	return "string"
}

func (s schema) describeNumber() string {
	text := s.typeName()
	if low, high := string(s.Minimum), string(s.Maximum); high != "" {
		if short := bounds[high]; short != "" {
			high = short
		}
		text += ", " + low + " to " + high
	}
	if s.Default != nil {
		text += fmt.Sprintf("; default %v", s.Default)
	}
	return text
}
