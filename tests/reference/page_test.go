package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	wantCommitted(t, "docs/reference.md", render)
}

func wantCommitted(t *testing.T, name string, render func(root string) ([]byte, error)) {
	t.Helper()
	generated, err := render("../..")
	must(t, err)
	committed, err := os.ReadFile("../../" + name)
	must(t, err)
	if !bytes.Equal(generated, committed) {
		t.Errorf("%s differs: in tests/reference, run go run .", name)
	}
}

func TestOpenAPI(t *testing.T) {
	wantCommitted(t, "httpapi/openapi.json", renderOpenAPI)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Generators of TypeScript need different names for a schema, a parameter, and a response with the
// suffix Response, and have a type OpenAPI of their own.
func TestOpenAPI_Names(t *testing.T) {
	document, err := os.ReadFile("../../httpapi/openapi.json")
	must(t, err)
	var parsed struct {
		Components struct{ Schemas, Parameters, Responses map[string]any }
	}
	must(t, json.Unmarshal(document, &parsed))
	if len(parsed.Components.Schemas) < 50 || len(parsed.Components.Parameters) < 20 {
		t.Fatalf("found %d schemas and %d parameters", len(parsed.Components.Schemas), len(parsed.Components.Parameters))
	}
	for name := range parsed.Components.Schemas {
		_, isParameter := parsed.Components.Parameters[name]
		_, isResponse := parsed.Components.Responses[strings.TrimSuffix(name, "Response")]
		if isParameter || isResponse && strings.HasSuffix(name, "Response") || name == "OpenAPI" {
			t.Errorf("the name of the schema %s is taken", name)
		}
	}
}

// A field without a comment or without a schema is an error, and not an empty cell.
func TestReference_Incomplete(t *testing.T) {
	complete := map[string]schema{"S": {Properties: map[string]schema{"a": {Type: "boolean"}}}}
	for name, c := range map[string]struct {
		fields  []field
		schemas schemas
		want    string
	}{
		"complete":       {[]field{{"a", "Text."}}, complete, ""},
		"no comment":     {[]field{{"a", ""}}, complete, "no comment"},
		"not in schema":  {[]field{{"a", "Text."}, {"b", "Text."}}, complete, "no schema"},
		"only in schema": {[]field{{"b", "Text."}}, schemas{"S": {Properties: map[string]schema{"a": {}, "b": {Type: "string"}}}}, "lacks fields"},
		"unknown type":   {[]field{{"a", "Text."}}, schemas{"S": {Properties: map[string]schema{"a": {Type: "date"}}}}, "unknown type"},
	} {
		var page bytes.Buffer
		err := section{goType: "T", request: "S"}.write(&page, &source{fields: map[string][]field{"T": c.fields}}, c.schemas)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
