package relayer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// The limits of labels.
const (
	maxLabels          = 32
	maxLabelKeyLength  = 63
	maxLabelValueRunes = 128
)

func checkLabels(labels map[string]string, found *problems) {
	if len(labels) > maxLabels {
		found.Add("labels", fmt.Sprintf("must have at most %d labels", maxLabels))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		for _, problem := range [...]string{labelKeyProblem(key), labelValueProblem(labels[key])} {
			if problem != "" {
				// The key is chosen by the sender, and may look like a path.
				found.ReportUnknown(strictjson.Join("labels", key), "", problem)
			}
		}
	}
}

func labelKeyProblem(key string) string {
	isInner := func(r rune) bool { return isAlphanumeric(r) || strings.ContainsRune("_.-/", r) }
	isOther := func(r rune) bool { return !isInner(r) }
	if key == "" || len(key) > maxLabelKeyLength || strings.ContainsFunc(key, isOther) ||
		!isAlphanumeric(rune(key[0])) || !isAlphanumeric(rune(key[len(key)-1])) {
		return "must have a key of 1 to 63 characters of A-Z a-z 0-9 _ . - / that begins and ends with a letter or digit"
	}
	return ""
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func labelValueProblem(value string) string {
	switch {
	case strictjson.TextProblem(value) != "":
		return strictjson.TextProblem(value)
	case utf8.RuneCountInString(value) > maxLabelValueRunes:
		return fmt.Sprintf("must be at most %d characters", maxLabelValueRunes)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "must not contain control characters"
	default:
		return ""
	}
}
