package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// field is a field of a Go struct that is part of the JSON form.
type field struct {
	name string // in JSON
	text string // from the doc comment
}

// source is what the page takes from the Go files of the root package.
type source struct {
	fields    map[string][]field // by the name of the struct
	types     map[string]string  // texts of the doc comments of types
	constants map[string]string  // values of string constants
}

// text returns the text of a field, or "" if there is none.
func (s *source) text(goType, name string) string {
	for _, f := range s.fields[goType] {
		if f.name == name {
			return f.text
		}
	}
	return ""
}

func parseSource(root string) (*source, error) {
	s := &source{fields: make(map[string][]field), types: make(map[string]string), constants: make(map[string]string)}
	var files []*ast.File
	for _, name := range []string{"relayer.go", "rpcurl.go", "policy.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		ast.Inspect(file, s.addConstants)
	}
	for _, file := range files {
		ast.Inspect(file, s.addStruct)
	}
	return s, nil
}

func (s *source) addConstants(node ast.Node) bool {
	spec, ok := node.(*ast.ValueSpec)
	if !ok {
		return true
	}
	for i, value := range spec.Values {
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			s.constants[spec.Names[i].Name], _ = strconv.Unquote(literal.Value)
		} else if ok {
			s.constants[spec.Names[i].Name] = literal.Value
		}
	}
	return false
}

func (s *source) addStruct(node ast.Node) bool {
	declaration, ok := node.(*ast.GenDecl)
	if !ok || declaration.Tok != token.TYPE {
		return true
	}
	spec := declaration.Specs[0].(*ast.TypeSpec)
	s.types[spec.Name.Name] = s.prose(declaration.Doc.Text(), nil)
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return false
	}
	names := make(map[string]string) // in JSON, by the name in Go
	for _, f := range structure.Fields.List {
		if name := jsonName(f); name != "" {
			names[f.Names[0].Name] = name
		}
	}
	for _, f := range structure.Fields.List {
		if name := jsonName(f); name != "" {
			s.fields[spec.Name.Name] = append(s.fields[spec.Name.Name], field{name, s.prose(f.Doc.Text(), names)})
		}
	}
	return false
}

// jsonName returns "" for a field that is not part of the JSON form.
func jsonName(f *ast.Field) string {
	if f.Tag == nil || len(f.Names) == 0 {
		return ""
	}
	tag, _ := strconv.Unquote(f.Tag.Value)
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

var (
	subject  = regexp.MustCompile(`^\w+ (?:is |are )?`)
	required = regexp.MustCompile(` (?:Required|Both are required)\.`)
	docLink  = regexp.MustCompile(`\[\*?(\w+(?:\.\w+)?)\]`)
	word     = regexp.MustCompile(`\b[A-Z]\w*[a-z]\w*\b`)
)

// prose returns the first paragraph of a comment as one line of Markdown, which begins without the
// name of the field or type and has the names of JSON in place of those of Go. Further paragraphs
// concern Go only.
func (s *source) prose(comment string, names map[string]string) string {
	paragraph, _, _ := strings.Cut(comment, "\n\n")
	text := strings.Join(strings.Fields(paragraph), " ")
	if text == "" {
		return ""
	}
	text = required.ReplaceAllString(subject.ReplaceAllString(text, ""), "")
	text = word.ReplaceAllStringFunc(text, func(found string) string {
		if name, isField := names[found]; isField {
			return "`" + name + "`"
		}
		return found
	})
	text = docLink.ReplaceAllStringFunc(text, func(link string) string {
		name := docLink.FindStringSubmatch(link)[1]
		if value, found := s.constants[name]; found {
			name = value
		}
		return "`" + name + "`"
	})
	return strings.ToUpper(text[:1]) + text[1:]
}
