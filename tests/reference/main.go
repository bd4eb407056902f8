// Command reference prints docs/reference.md: the fields of a relayer and of its policy, from
// the doc comments of package relayer and from the OpenAPI document. In this directory,
// go run . > ../../docs/reference.md updates the page that the test of this package compares.
package main

import (
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	page, err := render("../..")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.WriteString(page); err != nil {
		log.Fatal(err)
	}
}
