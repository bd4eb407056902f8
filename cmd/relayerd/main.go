// Command relayerd serves a relayer registry over HTTP, and maintains its database.
//
//	API_KEY=$(openssl rand -hex 16) relayerd serve --addr 127.0.0.1:8080 --db relayers.db
//
// relayerd --help lists the commands, and relayerd serve --help the flags of one.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
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
// contains what may be a connection string of a database flag.
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
		fmt.Fprintln(stderr, "relayerd:", printable(inFlags.Replace(withAdvice(err).Error())))
		return 1
	}
	return 0
}

// inFlags puts an error on one line, and names flags where a package names its options.
var inFlags = strings.NewReplacer("\n", "; ", "invalid relayer: change_reason", "--reason",
	"the maximum of deletes", "--max-deletes", "a maximum of deletes", "--max-deletes")

// useHTTPS is the advice after the status 400, with which a port for HTTPS responds to HTTP.
const useHTTPS = "if the server has HTTPS, use https, and healthcheck with --tls"

// withAdvice adds to some errors of a connection what to do.
func withAdvice(err error) error {
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isHTTP := errors.AsType[tls.RecordHeaderError](err)
	response, _ := errors.AsType[*client.ResponseError](err)
	switch {
	case isUnknown:
		return fmt.Errorf("%w: name the authority of the server with --ca-file", err)
	case isHTTP:
		return fmt.Errorf("%w: the server has no HTTPS: use http, and healthcheck without --tls", err)
	case response != nil && response.Status == http.StatusBadRequest && !errors.Is(err, relayer.ErrInvalid):
		return fmt.Errorf("%w: %s", err, useHTTPS)
	}
	return err
}

func newRootCommand(apiKey string) *cobra.Command {
	built, _ := debug.ReadBuildInfo() // go build always writes it
	root := &cobra.Command{
		Use:               "relayerd",
		Short:             "Serve a relayer registry over HTTP, and maintain its database",
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error { return rejectEmpty(command) },
		Version:           built.Main.Version + ", built with " + built.GoVersion,
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServeCommand(apiKey), newCheckCommand(), newKeysCommand(apiKey), newHistoryCommand(apiKey), newHealthcheckCommand())
	root.AddCommand(slices.Concat(newCopyCommands(apiKey), newPlanCommands(apiKey), newBulkCommands(apiKey))...)
	root.InitDefaultCompletionCmd()
	rejectArguments(root)
	// The default help command prints its arguments. --help exists on every command.
	root.SetHelpCommand(&cobra.Command{Hidden: true, RunE: root.RunE})
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
// RELAYERD_TOKENS_FILE for --tokens-file. It rejects other RELAYERD_ names, except with _PORT or
// _SERVICE_, as Kubernetes sets them.
func setFromEnvironment(command *cobra.Command) (err error) {
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		text, isOurs := strings.CutPrefix(name, "RELAYERD_")
		flag := command.Flags().Lookup(strings.ToLower(strings.ReplaceAll(text, "_", "-")))
		switch {
		case !isOurs || strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT"):
		case flag == nil:
			err = fmt.Errorf("%s is no flag: correct the name of the variable, or unset it (%s --help lists the flags)", printable(name), command.CommandPath())
		case !flag.Changed && command.Flags().Set(flag.Name, value) != nil:
			err = fmt.Errorf("%s needs a value of the type %s, as --%s", name, flag.Value.Type(), flag.Name)
		}
	}
	return err
}

// flagError replaces the errors of pflag, which contain the values of flags: they may be
// connection strings.
func flagError(command *cobra.Command, err error) error {
	problem := "malformed flag: write --name value"
	var wrong interface{ GetFlag() *pflag.Flag }
	if errors.As(err, &wrong) {
		problem = fmt.Sprintf("--%s needs a value of the type %s", wrong.GetFlag().Name, wrong.GetFlag().Value.Type())
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

// printable escapes what is not printable, as JSON does: a text of another client could control
// the terminal.
func printable(text string) string {
	var escaped []byte
	for _, char := range text {
		if unicode.IsPrint(char) {
			escaped = utf8.AppendRune(escaped, char)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, char) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return string(escaped)
}

// printableJSON is a writer of JSON, which keeps its meaning. Each Write must be of whole lines.
type printableJSON struct{ io.Writer }

func (w printableJSON) Write(data []byte) (int, error) {
	var escaped strings.Builder
	for line := range strings.Lines(string(data)) {
		escaped.WriteString(printable(strings.TrimSuffix(line, "\n")) + "\n")
	}
	_, err := io.WriteString(w.Writer, escaped.String())
	return len(data), err
}

func relayers(count int) string {
	if count == 1 {
		return "1 relayer"
	}
	return fmt.Sprintf("%d relayers", count)
}
