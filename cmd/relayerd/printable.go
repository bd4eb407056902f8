package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// printable returns a text of others for a terminal. Control characters, marks of direction and
// what else is not visible could change or hide the output around them, so they are escaped.
func printable(text string) string { return escaped(text, "") }

// escaped returns a text whose characters that are not printable are escaped as in JSON, except
// the kept ones. What is not UTF-8 becomes U+FFFD.
func escaped(text, kept string) string {
	var out strings.Builder
	for _, char := range text {
		if unicode.IsPrint(char) || strings.ContainsRune(kept, char) {
			out.WriteRune(char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	return out.String()
}

// jsonWriter escapes what is not printable in JSON, which keeps its meaning. Each Write is of
// whole characters.
type jsonWriter struct{ io.Writer }

func (w jsonWriter) Write(data []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, escaped(string(data), "\n")); err != nil {
		return 0, err
	}
	return len(data), nil
}
