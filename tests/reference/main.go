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
	document, err := renderOpenAPI("../..")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("../../httpapi/openapi.json", document, 0o644); err != nil {
		log.Fatal(err)
	}
	page, err := render("../..")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("../../docs/reference.md", []byte(page), 0o644); err != nil {
		log.Fatal(err)
	}
}
