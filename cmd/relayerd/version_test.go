package main

import (
	"regexp"
	"testing"
)

func TestVersion_Flag(t *testing.T) {
	t.Parallel()
	output, err := program("", "--version").Output()
	if err != nil || !regexp.MustCompile(`^relayerd version \S*, built with go1\.\d+\S*\n$`).Match(output) {
		t.Errorf("output %q, error %v", output, err)
	}
}
