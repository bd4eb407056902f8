package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/go-relayer/relayer"
)

// document is the OpenAPI document: schemas from the Go types, parameters of the selector from
// its keys, and the rest from three files.
type document struct {
	fixed    object
	examples object
	tables   struct {
		Operations []operation
		Responses  []answer
	}
	types types
}

// renderOpenAPI returns the OpenAPI document for the repository at root.
func renderOpenAPI(root string) ([]byte, error) {
	source, err := parseSource(root)
	if err != nil {
		return nil, err
	}
	d := &document{types: types{source: source}}
	for name, into := range map[string]any{"fixed.json": &d.fixed, "examples.json": &d.examples, "operations.json": &d.tables} {
		text, err := os.ReadFile(filepath.Join(root, "tests", "reference", name))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := d.types.addAll(); err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	compact, err := d.render().MarshalJSON()
	if err != nil {
		return nil, err
	}
	err = json.Indent(&indented, compact, "", "  ")
	return append(indented.Bytes(), '\n'), err
}

func (d *document) render() object {
	fixed := d.fixed.get("components").(object)
	parameters := fixed.get("parameters").(object)
	for _, filter := range selectorFilters() {
		parameters = parameters.with(filterName(filter), filter)
	}
	var responses object
	for _, a := range d.tables.Responses {
		responses = responses.with(a.Name, a.render(d))
	}
	components := fixed.
		with("parameters", parameters).
		with("responses", responses).
		with("examples", d.examples.get("components")).
		with("schemas", fixed.get("schemas").(object).merge(d.types.schemas))
	return d.fixed.get("head").(object).with("paths", d.paths()).with("components", components)
}

func filterName(filter object) string {
	var name strings.Builder
	name.WriteString("Filter")
	for part := range strings.SplitSeq(filter.get("name").(string), "_") {
		name.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return name.String()
}

func (d *document) parameterRefs(names []string) []object {
	var refs []object
	for _, name := range names {
		if name != filters {
			refs = append(refs, obj("$ref", "#/components/parameters/"+name))
			continue
		}
		for _, filter := range selectorFilters() {
			refs = append(refs, obj("$ref", "#/components/parameters/"+filterName(filter)))
		}
	}
	return refs
}

// selectorFilters returns a parameter for each key of a selector: the members of a relayer that it
// knows, and the search.
func selectorFilters() (parameters []object) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[relayer.Relayer]()) {
		name := jsonNameOf(field)
		if (relayer.Selector{}).Where(name).Err() != nil {
			continue
		}
		items, example := obj("type", "string", "minLength", 1), any("example")
		text := "Selects the relayers whose `" + name + "` is one of the values."
		switch {
		case field.Type.Kind() == reflect.Bool:
			items, example = obj("type", "boolean"), false
		case name == "network_type":
			items, example = obj("type", "string", "enum", relayer.NetworkTypes()), "evm"
		case name == "id":
			items, example = ref("RelayerId"), "sepolia-1"
		case name == "network":
			text += " Different parameters must all match; a parameter that is given several times matches any of its values. " +
				"The parameter `label.KEY`, which this document cannot declare, selects the relayers whose label KEY has one of the values."
		}
		parameters = append(parameters, obj("name", name, "in", "query", "description", text,
			"schema", obj("type", "array", "items", items), "example", []any{example}))
	}
	return append(parameters, obj("name", "search", "in", "query", "allowEmptyValue", true,
		"description", "Selects the relayers whose ID or first 900 bytes of the name contain one of these texts, in any letter case.",
		"schema", obj("type", "array", "maxItems", 8, "items", obj("type", "string", "maxLength", 128)), "example", []string{"example"}))
}
