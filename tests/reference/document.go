package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// document is the OpenAPI document: schemas from the Go types, parameters of the selector from
// its keys, operations and responses from their tables, and the rest from two files.
type document struct {
	fixed    object
	examples object
	filters  []object // parameters
	types    types
}

// renderOpenAPI returns the OpenAPI document for the repository at root.
func renderOpenAPI(root string) ([]byte, error) {
	source, err := parseSource(root)
	if err != nil {
		return nil, err
	}
	d := &document{types: types{source: source}}
	for name, into := range map[string]*object{"fixed.json": &d.fixed, "examples.json": &d.examples} {
		text, err := os.ReadFile(filepath.Join(root, "tests", "reference", name))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, into); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if d.filters, err = selectorFilters(root); err != nil {
		return nil, err
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
	for _, filter := range d.filters {
		parameters = parameters.with(filterName(filter), filter)
	}
	var responses object
	for _, a := range answers {
		responses = responses.with(a.name, a.render(d))
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
		for _, filter := range d.filters {
			refs = append(refs, obj("$ref", "#/components/parameters/"+filterName(filter)))
		}
	}
	return refs
}

// selectorKeys matches the entries of the table of keys.
var selectorKeys = regexp.MustCompile(`(?m)^\t\{name: (?:"(\w+)"|(\w+))(.*)\},$`)

// selectorFilters returns a parameter for each key of a selector.
func selectorFilters(root string) ([]object, error) {
	code, err := os.ReadFile(filepath.Join(root, "selector.go"))
	if err != nil {
		return nil, err
	}
	_, table, _ := strings.Cut(string(code), "\nvar selectorKeys = ")
	table, _, _ = strings.Cut(table, "\n}\n")
	var parameters []object
	for _, match := range selectorKeys.FindAllStringSubmatch(table, -1) {
		name, rules := match[1], match[3]
		if name == "" {
			constant := regexp.MustCompile(`\b` + match[2] + ` += "(\w+)"`).FindStringSubmatch(string(code))
			if constant == nil {
				return nil, fmt.Errorf("selector.go has no constant %s", match[2])
			}
			name = constant[1]
		}
		parameters = append(parameters, filterOf(name, rules))
	}
	if len(parameters) < 8 {
		return nil, fmt.Errorf("found %d keys of a selector", len(parameters))
	}
	return parameters, nil
}

func filterOf(name, rules string) object {
	items := obj("type", "string", "minLength", 1)
	var example any = "example"
	filter := obj("name", name, "in", "query", "description", "Selects the relayers whose `"+name+"` is one of the values.")
	schema := obj("type", "array")
	switch {
	case strings.Contains(rules, "valueProblem: flagProblem"):
		items, example = obj("type", "boolean"), false
	case strings.Contains(rules, "valueProblem: networkTypeProblem"):
		items, example = obj("type", "string", "enum", relayer.NetworkTypes()), "evm"
	case strings.Contains(rules, "valueProblem: idProblem"):
		items, example = ref("RelayerId"), "sepolia-1"
	case strings.Contains(rules, "valueProblem: searchProblem"):
		filter = obj("name", name, "in", "query", "allowEmptyValue", true, "description",
			"Selects the relayers whose ID or first 900 bytes of the name contain one of these texts, in any letter case.")
		items, schema = obj("type", "string", "maxLength", 128), obj("type", "array", "maxItems", 8)
	case name == "network":
		filter = filter.with("description", filter.get("description").(string)+" Different parameters must all match; a parameter that is given several times "+
			"matches any of its values. The parameter `label.KEY`, which this document cannot declare, selects the relayers whose label KEY has one of the values.")
	}
	return filter.merge(obj("schema", schema.with("items", items), "example", slices.Repeat([]any{example}, 1)))
}
