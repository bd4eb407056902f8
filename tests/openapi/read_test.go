package openapi

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL identifies the document in the schema compiler, which never fetches it.
const documentURL = "https://registry.invalid/openapi.json"

// document is the OpenAPI document as a JSON tree with exact numbers, and a JSON
// Schema compiler for it. kin-openapi is not exact: it reads bounds as 64-bit floats
// and does not check the bodies and headers of HEAD and 304.
type document struct {
	t        testing.TB
	tree     map[string]any
	compiler *jsonschema.Compiler
}

// read parses a document.
func read(t testing.TB, text []byte) *document {
	t.Helper()
	tree := must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))(t)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource(documentURL, tree); err != nil {
		t.Fatal(err)
	}
	return &document{t, tree.(map[string]any), compiler}
}

// readStrictly parses a document and closes its schemas. The document itself allows
// unknown members in responses, for later versions. Today there are none.
func readStrictly(t testing.TB, text []byte) *document {
	t.Helper()
	d := read(t, text)
	d.walk("#", d.tree, func(_ string, node map[string]any) {
		_, isSchema := node["properties"].(map[string]any)
		_, isReference := node["$ref"]
		_, isClosed := node["additionalProperties"]
		if isSchema && !isClosed && (node["type"] == "object" || isReference) {
			node["unevaluatedProperties"] = false
		}
	})
	return d
}

// schema returns the schema at a JSON pointer.
func (d *document) schema(pointer string) *jsonschema.Schema {
	d.t.Helper()
	return must(d.compiler.Compile(documentURL + pointer))(d.t)
}

// resolve follows references from a JSON pointer and returns the pointer of the
// object. A reference with other members next to it is a schema, not a reference.
func (d *document) resolve(pointer string) string {
	for {
		reference, ok := d.at(pointer)["$ref"].(string)
		if !ok || len(d.at(pointer)) > 1 {
			return pointer
		}
		pointer = reference
	}
}

// at returns the object at a JSON pointer, or nil.
func (d *document) at(pointer string) map[string]any {
	var node any = d.tree
	for _, step := range strings.Split(pointer, "/")[1:] {
		object, _ := node.(map[string]any)
		node = object[unescape.Replace(step)]
	}
	object, _ := node.(map[string]any)
	return object
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// walk calls visit for every object below node, except for example data.
func (d *document) walk(pointer string, node any, visit func(pointer string, node map[string]any)) {
	switch node := node.(type) {
	case map[string]any:
		visit(pointer, node)
		for name, below := range node {
			if name != "value" && name != "example" && name != "examples" || pointer == "#/components" {
				d.walk(pointer+"/"+escape.Replace(name), below, visit)
			}
		}
	case []any:
		for _, below := range node {
			d.walk(pointer+"/-", below, visit)
		}
	}
}

// examplesOf returns the examples next to a schema.
func (d *document) examplesOf(pointer string, node map[string]any) map[string]any {
	if node["schema"] == nil {
		return nil
	}
	found := make(map[string]any)
	if example, ok := node["example"]; ok {
		found["example"] = example
	}
	for name := range d.at(pointer + "/examples") {
		found[name] = d.at(d.resolve(pointer + "/examples/" + escape.Replace(name)))["value"]
	}
	return found
}
