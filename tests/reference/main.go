// Command reference writes what describes a relayer: httpapi/openapi.json, from the Go types, their
// tags and comments, and docs/reference.md, from the same comments and the document. In this
// directory, go run . updates both files, which the test of this package compares.
package main

import (
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	write("httpapi/openapi.json", renderOpenAPI)
	write("docs/reference.md", render) // from the document too
}

func write(name string, render func(root string) ([]byte, error)) {
	text, err := render("../..")
	if err == nil {
		err = os.WriteFile("../../"+name, text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
