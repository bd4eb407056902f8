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

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)

	// Without a limit, or if it cannot be read, the garbage collector works as usual.
	_, _ = memlimit.Set()

	os.Exit(execute(ctx, os.Args[1:], os.Getenv("API_KEY"), os.Stdin, os.Stdout, os.Stderr))
}

// execute runs a command, prints its error on one line, and returns the exit status.
func execute(ctx context.Context, args []string, apiKey string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	err := run(ctx, args, apiKey, stdin, stdout, stderr)
	switch {
	case errors.Is(err, errChangesPending):
		return 2
	case err != nil:
		fmt.Fprintln(stderr, "relayerd:", errorText(ctx, err))
		return 1
	}
	return 0
}

// errorText returns an error on one line. If a signal ended the command, it begins with
// the signal.
func errorText(ctx context.Context, err error) string {
	text := printable(strings.ReplaceAll(err.Error(), "\n", "; "))
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return fmt.Sprintf("%v: %s", context.Cause(ctx), text)
	}
	return text
}

// run executes a command. No error contains the value of a flag that may hold a
// connection string.
func run(ctx context.Context, args []string, apiKey string, stdin io.Reader, stdout, stderr io.Writer) error {
	root := newRootCommand(apiKey)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContext(ctx)
}

func newRootCommand(apiKey string) *cobra.Command {
	root := &cobra.Command{
		Use:               "relayerd",
		Short:             "Serve a relayer registry over HTTP, and maintain its database",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: checkFlags,
		RunE:              func(command *cobra.Command, _ []string) error { return command.Help() },
		Version:           version(),

		SuggestionsMinimumDistance: 2, // of a wrong name of a command
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
		command.Args = rejectArgument
	}
	for _, child := range command.Commands() {
		rejectArguments(child)
	}
}

func rejectArgument(command *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case command.HasSubCommands():
		if similar := command.SuggestionsFor(args[0]); len(similar) > 0 {
			return fmt.Errorf("unknown command: did you mean %s %s?", command.CommandPath(), similar[0])
		}
		return fmt.Errorf("unknown command (%s --help lists the commands)", command.CommandPath())
	}
	return fmt.Errorf("unexpected argument: %s takes only flags (%[1]s --help lists them)", command.CommandPath())
}

// version returns the version of the module and of Go, such as "v1.2.3, built with go1.26".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + ", built with " + info.GoVersion
}
