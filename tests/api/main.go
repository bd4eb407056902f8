// Command api prints the exported API of the packages that hosts import: one line for each
// exported constant, variable, function, type, method and field, sorted by package. In this
// directory, go run . -count prints their number, and go run . > ../../api.txt updates the
// listing that the test of this package compares. An interface that another one embeds has a
// line too, but adds no name to the number.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	root := flag.String("root", "../..", "`directory` of the repository")
	counts := flag.Bool("count", false, "print the number of names of each package instead of the lines")
	flag.Parse()
	total := 0
	for _, directory := range directoriesOf(*root) {
		lines, names, err := listing(*root, directory)
		if err != nil {
			log.Fatal(err)
		}
		if total += names; *counts {
			fmt.Printf("%5d %s\n", names, directory)
			continue
		}
		for _, line := range lines {
			fmt.Println(line)
		}
	}
	if *counts {
		fmt.Printf("%5d total\n", total)
	}
	if total == 0 {
		os.Exit(1)
	}
}
