// Command api prints the exported API of the packages that hosts import: one line for each
// exported constant, variable, function, type, method and field, and for each interface that an
// exported one embeds, sorted by package. In this directory, go run . > ../../api.txt updates the
// listing that the test of this package compares.
package main

import (
	"fmt"
	"log"
)

func main() {
	log.SetFlags(0)
	for _, directory := range directoriesOf("../..") {
		lines, err := listing("../..", directory)
		if err != nil {
			log.Fatal(err)
		}
		for _, line := range lines {
			fmt.Println(line)
		}
	}
}
