package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The texts of cobra and pflag contain the values of flags, which may be connection
// strings, or names of their own. The functions of this file replace them.

// plainName matches the name of a flag, and no connection string.
var plainName = regexp.MustCompile(`^[a-z][a-z-]*$`)

// flagError describes a problem of a flag without the value of the flag.
func flagError(command *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	problem := "malformed flag: write --name value"
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		problem = fmt.Sprintf("invalid value for --%s: it must be %s", flag.Name, valueForms[flag.Value.Type()])
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		problem = "missing value for --" + missing.GetFlag().Name
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		problem = "unknown flag"
		if name := unknown.GetSpecifiedName(); unknown.GetSpecifiedShortnames() != "" {
			problem += ": flags begin with two dashes"
		} else if plainName.MatchString(name) {
			problem += " --" + name + suggestion("--", similarFlags(command.Flags(), name))
		}
	}
	return fmt.Errorf("%s%s (%s --help lists the flags)", problem, example(": write, for example, ", command), command.CommandPath())
}

// valueForms describes the types of flags whose values are parsed.
var valueForms = map[string]string{
	"bool":     "true or false, after an equals sign",
	"duration": "a duration, such as 90s or 1h",
	"float64":  "a number",
	"int":      "a whole number",
}

// suggestionDistance is the number of wrong letters in the name of a command that is still
// recognized.
const suggestionDistance = 2

// suggestion returns the first of the names as a question.
func suggestion(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(", did you mean %s%s?", prefix, names[0])
}

// knownAs maps names that flags of this program do not have to those that they have.
var knownAs = map[string][]string{
	"address":    {"addr"},
	"config":     {"file"},
	"database":   {"db"},
	"listen":     {"addr"},
	"token-file": {"tokens-file"},
	"tokens":     {"tokens-file"},
	"url":        {"server"},
	"db":         {"from", "server"},
	"from":       {"db"},
}

// similarFlags returns the flags of a command that a wrong name may stand for.
func similarFlags(flags *pflag.FlagSet, name string) []string {
	return slices.DeleteFunc(slices.Clone(knownAs[name]), func(known string) bool { return flags.Lookup(known) == nil })
}

// example returns the first example of a command, after a text, or "" if it has none.
func example(prefix string, command *cobra.Command) string {
	first, _, _ := strings.Cut(strings.TrimSpace(command.Example), "\n")
	if first == "" {
		return ""
	}
	return prefix + first
}

// The annotations of a flag: other flags that must or must not be set with it.
const (
	isRequired = "relayerd_required"
	needs      = "relayerd_needs"
	excludes   = "relayerd_excludes"
)

func require(command *cobra.Command, flags ...string) {
	for _, flag := range flags {
		annotate(command, flag, isRequired)
	}
}

// annotate adds flags to an annotation of a flag.
func annotate(command *cobra.Command, flag, annotation string, others ...string) {
	values := append(command.Flag(flag).Annotations[annotation], others...)
	if err := command.Flags().SetAnnotation(flag, annotation, values); err != nil {
		panic(err) // the flag is not defined
	}
}

// checkFlags checks which flags are set, and that none is empty: an empty value may come
// from an unset shell variable.
func checkFlags(command *cobra.Command) error {
	var problems []error
	flags := command.Flags()
	flags.VisitAll(func(flag *pflag.Flag) { problems = append(problems, checkFlag(flags, flag)...) })
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%w%s (%s --help lists the flags)", errors.Join(problems...), example(": write, for example, ", command), command.CommandPath())
}

func checkFlag(flags *pflag.FlagSet, flag *pflag.Flag) (problems []error) {
	if _, ok := flag.Annotations[isRequired]; ok && !flag.Changed {
		problems = append(problems, fmt.Errorf("--%s is required", flag.Name))
	}
	if !flag.Changed {
		return problems
	}
	if flag.Value.String() == "" {
		problems = append(problems, fmt.Errorf("--%s is empty", flag.Name))
	}
	for _, other := range flag.Annotations[needs] {
		if !flags.Changed(other) {
			problems = append(problems, fmt.Errorf("--%s requires --%s", flag.Name, other))
		}
	}
	for _, other := range flag.Annotations[excludes] {
		if flags.Changed(other) {
			problems = append(problems, fmt.Errorf("--%s and --%s exclude each other", flag.Name, other))
		}
	}
	return problems
}
