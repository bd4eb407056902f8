// Command relayerd serves a relayer registry over HTTP, and maintains its database.
//
//	API_KEY=$(openssl rand -hex 16) relayerd serve --addr 127.0.0.1:8080 --db relayers.db
//
// relayerd --help lists the commands, and relayerd serve --help the flags of one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)

	// Without a limit, or if it cannot be read, the garbage collector works as usual.
	_, _ = memlimit.Set()

	os.Exit(execute(ctx, os.Args[1:], os.Getenv("API_KEY"), os.Stdin, os.Stdout, os.Stderr))
}

// execute runs a command, prints its error on one line, and returns the exit status. No error
// contains the value of a flag that may hold a connection string.
func execute(ctx context.Context, args []string, apiKey string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	root := newRootCommand(apiKey)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case errors.Is(err, errChangesPending):
		return 2
	case err != nil:
		fmt.Fprintln(stderr, "relayerd:", printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
		return 1
	}
	return 0
}

// printable replaces what is not visible in a text from another client: it could control the terminal.
func printable(text string) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsPrint(char) {
			return char
		}
		return unicode.ReplacementChar
	}, text)
}

// printableJSON escapes in JSON what [printable] replaces in text. The JSON keeps its meaning. Each
// Write must be of whole characters.
type printableJSON struct{ io.Writer }

func (w printableJSON) Write(data []byte) (int, error) {
	var escaped []byte
	for _, char := range string(data) {
		if unicode.IsPrint(char) || char == '\n' {
			escaped = utf8.AppendRune(escaped, char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	if _, err := w.Writer.Write(escaped); err != nil {
		return 0, err
	}
	return len(data), nil
}

func newRootCommand(apiKey string) *cobra.Command {
	root := &cobra.Command{
		Use:               "relayerd",
		Short:             "Serve a relayer registry over HTTP, and maintain its database",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error { return rejectEmpty(command) },
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
		Version:           version(),
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServeCommand(apiKey), newCheckCommand(), newBackupCommand(apiKey), newRestoreCommand(), newCompactCommand(),
		newCopyCommand(), newKeysCommand(apiKey), newPlanCommand(apiKey), newApplyCommand(apiKey), newExportCommand(apiKey),
		newHistoryCommand(apiKey), newPauseCommand(apiKey), newResumeCommand(apiKey), newHealthcheckCommand())
	root.InitDefaultCompletionCmd()
	// The default help command prints its arguments. --help exists on every command.
	root.SetHelpCommand(&cobra.Command{Hidden: true, RunE: root.RunE})
	rejectArguments(root)
	return root
}

// rejectArguments replaces the errors of cobra, which contain the argument: it may
// be a connection string.
func rejectArguments(command *cobra.Command) {
	if !command.Runnable() {
		// cobra does not check the arguments of a command that cannot run.
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	}
	if !strings.Contains(command.Use, " ") { // no argument is named
		command.Args = func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command or argument (%s --help lists the commands and flags)", command.CommandPath())
		}
	}
	for _, child := range command.Commands() {
		rejectArguments(child)
	}
}

// version returns the version of the module and of Go, such as "v1.2.3, built with go1.26".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + ", built with " + info.GoVersion
}

// rejectEmpty returns an error if a flag is set to an empty value, as by an unset shell variable.
func rejectEmpty(command *cobra.Command) (err error) {
	command.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Value.String() == "" {
			err = fmt.Errorf("--%s is empty (%s --help lists the flags)", flag.Name, command.CommandPath())
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
			err = fmt.Errorf("%s needs a value of the type %s, as --%s", name, flag.Value.Type(), flag.Name)
		}
	})
	return err
}

// flagError replaces the errors of pflag, which contain the values of flags: they may be
// connection strings.
func flagError(command *cobra.Command, err error) error {
	problem := "malformed flag: write --name value"
	if errors.Is(err, pflag.ErrHelp) {
		return err
	} else if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		problem = fmt.Sprintf("--%s needs a value of the type %s", invalid.GetFlag().Name, invalid.GetFlag().Value.Type())
	} else if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		problem = fmt.Sprintf("--%s needs a value", missing.GetFlag().Name)
	} else if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		problem = "unknown flag"
		if name := unknown.GetSpecifiedName(); unknown.GetSpecifiedShortnames() != "" {
			problem += ": flags begin with two dashes"
		} else if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") == "" {
			problem += " --" + name
		}
	}
	return fmt.Errorf("%s (%s --help lists the flags)", problem, command.CommandPath())
}

func require(command *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err) // the flag is not defined
		}
	}
}
