package relayer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"

	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

const (
	// textSeparator separates the parts of the text of a record. No search contains it.
	textSeparator = "\x1f"

	// maxSearchedName is how many bytes of a name are searched.
	maxSearchedName = 900
)

// searchText returns the text in which searches look for their values.
func searchText(r *Relayer) string {
	return mask.Shortened(fold(r.ID+textSeparator+mask.Shortened(r.Name, maxSearchedName)), limits.Text)
}

func fold(text string) string {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return cases.Fold().String(text)
		}
	}
	return strings.ToLower(text)
}

// The limits of searches.
const (
	maxSearches     = 8
	maxSearchLength = 128 // characters
)

func searchProblem(value string) string {
	switch {
	case strictjson.TextProblem(value) != "":
		return strictjson.TextProblem(value)
	case utf8.RuneCountInString(value) > maxSearchLength:
		return fmt.Sprintf("must be at most %d characters", maxSearchLength)
	case strings.Contains(value, textSeparator):
		return "must not contain the control character U+001F"
	default:
		return ""
	}
}
