// Package cron checks the syntax of cron schedules. It accepts what common cron
// libraries agree on: L, W and #, on which they differ, are rejected.
package cron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxLength exceeds any useful schedule and bounds the work of checking one.
const maxLength = 256

var nicknames = []string{"@yearly", "@monthly", "@weekly", "@daily", "@hourly"}

type field struct {
	least, most int
	names       []string // of the numbers from least on
	optional    bool     // may be ?
}

// fields are the 7 fields from seconds to years.
var fields = []field{
	{most: 59},
	{most: 59},
	{most: 23},
	{least: 1, most: 31, optional: true},
	{least: 1, most: 12, names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}},
	{most: sunday, names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}, optional: true},
	{least: 1970, most: 2100},
}

// sunday is the second number of Sunday, which is also 0.
const sunday = 7

// Problem returns a message if schedule is not a nickname such as @daily or a
// cron expression of 5, 6 or 7 fields, and "" otherwise. An expression of 6
// fields begins with the seconds.
func Problem(schedule string) string {
	if len(schedule) > maxLength {
		return fmt.Sprintf("must be at most %d characters long", maxLength)
	}
	if slices.Contains(nicknames, strings.Trim(schedule, " \t")) || isExpression(schedule) {
		return ""
	}
	return "must be a cron expression of 5, 6 or 7 fields, such as */5 * * * *"
}

func isExpression(schedule string) bool {
	// Some letters outside ASCII have an ASCII capital: ſun is not a day.
	if strings.ContainsFunc(schedule, func(r rune) bool { return r > unicode.MaxASCII }) {
		return false
	}
	texts := strings.FieldsFunc(strings.ToUpper(schedule), func(r rune) bool { return r == ' ' || r == '\t' })
	if len(texts) == len(fields)-2 {
		texts = slices.Insert(texts, 0, "0")
	}
	if len(texts) == len(fields)-1 {
		texts = append(texts, "*")
	}
	if len(texts) != len(fields) {
		return false
	}
	for i, text := range texts {
		for item := range strings.SplitSeq(text, ",") {
			if !fields[i].accepts(item) {
				return false
			}
		}
	}
	return true
}

// accepts reports whether item is ?, *, a number or a range of numbers, the last
// three also with a step.
func (f field) accepts(item string) bool {
	if item == "?" {
		return f.optional
	}
	numbers, step, stepped := strings.Cut(item, "/")
	if stepped && !f.acceptsStep(step) {
		return false
	}
	if numbers == "*" {
		return true
	}
	from, to, isRange := strings.Cut(numbers, "-")
	if !isRange {
		to = from
	}
	first, firstOK := f.number(from)
	last, lastOK := f.number(to)
	if f.most == sunday && first == sunday {
		first = 0
	}
	return firstOK && lastOK && first <= last
}

// acceptsStep rejects a step that exceeds every number of the field, because it
// would have no effect.
func (f field) acceptsStep(text string) bool {
	step, ok := decimal(text)
	return ok && text[0] != '0' && step <= f.most
}

// number returns the value of a number or a name of the field.
func (f field) number(text string) (int, bool) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.least + i, true
	}
	number, ok := decimal(text)
	return number, ok && f.least <= number && number <= f.most && len(text) <= max(2, len(strconv.Itoa(f.most)))
}

// decimal rejects signs, which strconv accepts.
func decimal(text string) (int, bool) {
	number, err := strconv.Atoi(text)
	return number, err == nil && strings.Trim(text, "0123456789") == ""
}
