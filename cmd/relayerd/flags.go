package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The texts of cobra and pflag contain values of flags and arguments, which may be connection
// strings. The functions of this file replace them.

// checkFlags checks the flags of a command before it runs.
func checkFlags(command *cobra.Command, _ []string) error {
	err := cmp.Or(rejectEmpty(command.Flags()), command.ValidateRequiredFlags(), command.ValidateFlagGroups())
	if err == nil {
		return nil
	}
	example, _, _ := strings.Cut(strings.TrimSpace(command.Example), "\n")
	if example != "" {
		example = ": write, for example, " + example
	}
	return fmt.Errorf("%w%s (%s --help lists the flags)", err, example, command.CommandPath())
}

// rejectEmpty returns an error if a flag is set to an empty value, as by an unset shell variable.
func rejectEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Value.String() == "" {
			err = fmt.Errorf("--%s is empty", flag.Name)
		}
	})
	return err
}

// setFromEnvironment sets each flag that is not given to the value of its environment variable:
// RELAYERD_TOKENS_FILE for --tokens-file.
func setFromEnvironment(command *cobra.Command) (err error) {
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		name := "RELAYERD_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, isSet := os.LookupEnv(name)
		if isSet && !flag.Changed && command.Flags().Set(flag.Name, value) != nil {
			err = fmt.Errorf("%s must be %s, as --%s", name, valueForms[flag.Value.Type()], flag.Name)
		}
	})
	return err
}

// flagError describes a problem of a flag without the value of the flag.
func flagError(command *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	problem := "malformed flag: write --name value"
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		problem = fmt.Sprintf("invalid value for --%s: it must be %s", invalid.GetFlag().Name, valueForms[invalid.GetFlag().Value.Type()])
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		problem = "missing value for --" + missing.GetFlag().Name
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		problem = "unknown flag"
		if name := unknown.GetSpecifiedName(); unknown.GetSpecifiedShortnames() != "" {
			problem += ": flags begin with two dashes"
		} else if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") == "" {
			problem += " --" + name
		}
	}
	return fmt.Errorf("%s (%s --help lists the flags)", problem, command.CommandPath())
}

// valueForms describes the types of flags whose values are parsed.
var valueForms = map[string]string{
	"bool":     "true or false",
	"duration": "a duration, such as 90s or 1h",
	"float64":  "a number",
	"int":      "a whole number",
}

func require(command *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err) // the flag is not defined
		}
	}
}
