package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// directoriesOf returns those of the packages that hosts import, below root.
func directoriesOf(root string) []string {
	all := []string{".", "client", "enforce", "httpapi", "keyring", "mirror", "page", "plan", "rpcguard"}
	stores, _ := filepath.Glob(filepath.Join(root, "store", "*")) // the pattern is valid
	for _, path := range stores {
		if name := filepath.Base(path); name != "internal" {
			all = append(all, "store/"+name)
		}
	}
	return all
}

// listing returns a line for each exported name of the package in a directory below root, and
// for each interface that an exported interface embeds or that a type is declared to implement,
// sorted.
func listing(root, directory string) (lines []string, err error) {
	// The listing is that of one platform, wherever the program runs.
	platform := build.Default
	platform.GOOS, platform.GOARCH, platform.CgoEnabled = "linux", "amd64", false
	pkg, err := platform.ImportDir(filepath.Join(root, directory), 0)
	if err != nil {
		return nil, err
	}
	l := &lister{name: cmp.Or(strings.TrimPrefix(directory, "."), pkg.Name), files: token.NewFileSet()}
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(l.files, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			l.add(declaration)
		}
	}
	slices.Sort(l.lines)
	return l.lines, nil
}

// lister collects the lines of one package.
type lister struct {
	name  string
	files *token.FileSet
	lines []string
}

func (l *lister) line(format string, parts ...any) {
	l.lines = append(l.lines, l.name+": "+fmt.Sprintf(format, parts...))
}

func (l *lister) add(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		l.addFunc(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				l.addType(s)
			case *ast.ValueSpec:
				l.addValues(d.Tok, s)
			}
		}
	}
}

// addFunc adds a function, or a method of an exported type.
func (l *lister) addFunc(f *ast.FuncDecl) {
	if !f.Name.IsExported() {
		return
	}
	if f.Recv == nil {
		l.line("func %s%s", f.Name, l.signature(f.Type))
		return
	}
	receiver := l.text(f.Recv.List[0].Type)
	if name, _, _ := strings.Cut(strings.TrimPrefix(receiver, "*"), "["); ast.IsExported(name) {
		l.line("method (%s) %s%s", receiver, f.Name, l.signature(f.Type))
	}
}

func (l *lister) addValues(kind token.Token, values *ast.ValueSpec) {
	for i, name := range values.Names {
		if name.Name == "_" && values.Type != nil {
			l.line("%s implements %s", l.text(values.Values[i]), l.text(values.Type))
		}
		if !name.IsExported() {
			continue
		}
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s", kind, name, l.text(values.Type)))
		if kind == token.CONST && i < len(values.Values) {
			line += " = " + l.text(values.Values[i])
		}
		l.line("%s", line)
	}
}

// addType adds a type with its exported fields, and the methods of an interface.
func (l *lister) addType(t *ast.TypeSpec) {
	if !t.Name.IsExported() {
		return
	}
	name := t.Name.Name + l.parameters(t.TypeParams)
	if t.Assign.IsValid() {
		name += " ="
	}
	switch definition := t.Type.(type) {
	case *ast.StructType:
		l.line("type %s struct", name)
		l.addMembers("field", t.Name.Name, definition.Fields)
	case *ast.InterfaceType:
		l.line("type %s interface", name)
		l.addMembers("method", t.Name.Name, definition.Methods)
	default:
		l.line("type %s %s", name, l.text(definition))
	}
}

func (l *lister) addMembers(kind, owner string, members *ast.FieldList) {
	for _, member := range members.List {
		if len(member.Names) == 0 {
			l.addEmbedded(owner, member.Type)
		}
		for _, name := range member.Names {
			if !name.IsExported() {
				continue
			}
			if method, ok := member.Type.(*ast.FuncType); ok && kind == "method" {
				l.line("method (%s) %s%s", owner, name, l.signature(method))
				continue
			}
			l.line("%s %s.%s %s", kind, owner, name, l.text(member.Type))
		}
	}
}

func (l *lister) addEmbedded(owner string, embedded ast.Expr) {
	text := l.text(embedded)
	if base := text[strings.LastIndexAny(text, "*.")+1:]; ast.IsExported(base) {
		l.line("embedded %s.%s", owner, text)
	}
}

// signature returns the parameters and results of a function.
func (l *lister) signature(f *ast.FuncType) string {
	return strings.TrimPrefix(l.text(f), "func")
}

func (l *lister) parameters(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var parts []string
	for _, parameter := range list.List {
		for _, name := range parameter.Names {
			parts = append(parts, name.Name+" "+l.text(parameter.Type))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// text returns a type on one line.
func (l *lister) text(node ast.Expr) string {
	if node == nil {
		return ""
	}
	var text strings.Builder
	if err := printer.Fprint(&text, l.files, node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
