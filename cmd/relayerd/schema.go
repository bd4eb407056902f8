package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	texts "golang.org/x/text/message"

	"github.com/go-relayer/relayer"
)

// settingsRule returns the option that checks new and changed settings by the JSON Schema of the
// file.
func settingsRule(file string) (option relayer.Option, err error) {
	const flag = "--settings-schema"
	if err := checkFile(flag, file); err != nil {
		return option, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return option, inputError(flag, file, "create it as a JSON Schema", err)
	}
	schema, err := compileSchema(data)
	if err != nil {
		return option, fmt.Errorf("%s: %s: %w", flag, file, err)
	}
	return relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, changed *relayer.Relayer) error {
		if changed == nil || changed.Settings == nil || old != nil && bytes.Equal(old.Settings, changed.Settings) {
			return nil
		}
		return settingsError(schema, changed.Settings)
	}), nil
}

// noLoader is a [jsonschema.URLLoader]: a schema is one file.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("the schema must not refer to other documents")
}

func compileSchema(data []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("must be a JSON Schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.AssertFormat()
	const name = "https://relayerd.invalid/settings"
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(name)
	if err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " ")) // on one line
	}
	return schema, nil
}

// settingsError returns a [*relayer.ValidationError] with every problem of settings.
func settingsError(schema *jsonschema.Schema, settings []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(settings))
	if err != nil {
		return err
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(schema.Validate(value), &invalid) {
		return nil
	}
	found := &relayer.ValidationError{}
	addSchemaProblems(found, value, invalid)
	return found
}

// addSchemaProblems adds what the schema refuses, with the causes in place of what they cause.
func addSchemaProblems(found *relayer.ValidationError, value any, invalid *jsonschema.ValidationError) {
	path := settingsPath(value, invalid.InstanceLocation)
	add := func(field, text string) {
		problem := relayer.FieldError{Field: field, Message: text}
		if !slices.Contains(found.Fields, problem) {
			found.Fields = append(found.Fields, problem)
		}
	}
	switch refused := invalid.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range refused.Properties {
			add(path+"."+name, "is not a known field")
		}
	case *kind.Required:
		for _, name := range refused.Missing {
			add(path+"."+name, "is required")
		}
	default:
		if len(invalid.Causes) == 0 {
			add(path, "does not match the schema of this server: "+refused.LocalizedString(texts.NewPrinter(language.English)))
		}
	}
	for _, cause := range invalid.Causes {
		addSchemaProblems(found, value, cause)
	}
}

// settingsPath returns the path of a field of settings.
func settingsPath(value any, location []string) string {
	var path strings.Builder
	path.WriteString("settings")
	for _, name := range location {
		switch parent := value.(type) {
		case []any:
			path.WriteString("[" + name + "]")
			var i int
			if _, err := fmt.Sscan(name, &i); err == nil && i < len(parent) {
				value = parent[i]
			}
		case map[string]any:
			path.WriteString("." + name)
			value = parent[name]
		}
	}
	return path.String()
}
