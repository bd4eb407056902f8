package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	page, err := render("../..")
	if err != nil {
		t.Fatal(err)
	}
	wantCommitted(t, "docs/reference.md", page)
}

func wantCommitted(t *testing.T, name, generated string) {
	t.Helper()
	committed, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	if generated != string(committed) {
		t.Errorf("%s differs: in tests/reference, run go run .", name)
	}
}

func TestOpenAPI(t *testing.T) {
	document, err := renderOpenAPI("../..")
	if err != nil {
		t.Fatal(err)
	}
	wantCommitted(t, "httpapi/openapi.json", string(document))
}

// Generators of TypeScript need different names for a schema, a parameter, and a response with the
// suffix Response, and have a type OpenAPI of their own.
func TestOpenAPI_Names(t *testing.T) {
	document, err := os.ReadFile("../../httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Components struct{ Schemas, Parameters, Responses map[string]any }
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		t.Fatal(err)
	}
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
		var page strings.Builder
		err := section{goType: "T", request: "S"}.write(&page, &source{fields: map[string][]field{"T": c.fields}}, c.schemas)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
