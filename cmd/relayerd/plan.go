package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

// errChangesPending makes plan exit with status 2.
var errChangesPending = errors.New("changes are pending")

type planConfig struct {
	selection
	plan.Options
	file      string
	expandEnv bool
	yes       bool
	reason    string
}

// newPlanCommands returns the commands of a configuration file.
func newPlanCommands(apiKey string) []*cobra.Command {
	c := planConfig{selection: selection{target: target{apiKey: apiKey}}}
	plan := &cobra.Command{Use: "plan", Short: "Show the changes that a configuration file makes", RunE: c.plan,
		Example: "  relayerd plan -f relayers.json --server https://registry.internal",
		Long: `Plan compares a configuration file with the relayers of a server. The file is JSON
with an array "relayers", such as the config.json of OpenZeppelin Relayer. Plan changes
nothing. Its exit status is 0 without changes, 2 with changes, and 1 after an error.`}
	apply := &cobra.Command{Use: "apply", Short: "Make the changes of a configuration file", RunE: c.apply,
		Example: `  relayerd apply -f relayers.json --server https://registry.internal
  relayerd apply -f relayers.json --server https://registry.internal --yes   # in a pipeline`,
		Long: `Apply shows the plan of a configuration file, asks for confirmation, and makes the
changes. A relayer that another writer has changed since the plan is not changed. Run
apply again to resume after a failure.`}
	export := &cobra.Command{Use: "export", Short: "Print the configuration file of a server", RunE: c.export,
		Example: "  relayerd export --server https://registry.internal --selector label.team=payments",
		Long: `Export prints the relayers of a server as a configuration file for plan and apply, in
creation order. RPC URLs are masked: plan and apply keep the stored URL of a masked one.`}
	c.selection.addFlags(export)
	for _, command := range []*cobra.Command{plan, apply} {
		c.selection.addFlags(command)
		flags := command.Flags()
		flags.StringVarP(&c.file, "file", "f", "", "configuration `file`; - is the standard input")
		flags.BoolVar(&c.expandEnv, "expand-env", false, "replace ${NAME} in RPC URLs and header values by environment variables")
		flags.BoolVar(&c.Prune, "prune", false, "delete the relayers that the file does not list, of those that --selector selects")
		flags.IntVar(&c.MaxDeletes, "max-deletes", 0, "permit --prune to delete this `number` of relayers; without it at most 10, and none if the file is empty")
		flags.BoolVar(&c.KeepPaused, "keep-paused", false, "leave paused of existing relayers as it is")
		_ = command.MarkFlagRequired("file")
	}
	apply.Flags().BoolVar(&c.yes, "yes", false, "do not ask for confirmation")
	apply.Flags().StringVar(&c.reason, "reason", "", "`text` to store with each change, at most 256 characters (default the name of the file)")
	return []*cobra.Command{plan, apply, export}
}

func (c *planConfig) plan(command *cobra.Command, _ []string) error {
	changes, err := c.show(command)
	if err == nil {
		err = changes.Err()
	}
	if err == nil && changes.HasChanges() {
		return errChangesPending
	}
	return err
}

// show makes a plan and prints it.
func (c *planConfig) show(command *cobra.Command) (*plan.Plan, error) {
	if command.Flags().Changed("max-deletes") && (c.MaxDeletes < 1 || !c.Prune) {
		return nil, errors.New("--max-deletes must be 1 or more, and requires --prune")
	}
	desired, err := c.read(command)
	if err != nil {
		return nil, err
	}
	registry, selector, err := c.open()
	if err != nil {
		return nil, err
	}
	c.Selector = selector
	changes, err := plan.New(command.Context(), registry, desired, c.Options)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprint(command.OutOrStdout(), changes); err != nil {
		return nil, fmt.Errorf("the plan was not shown, and nothing was changed: %w", err)
	}
	return changes, nil
}

// read returns the relayers of the file, and prints what is ignored or not expanded.
func (c *planConfig) read(command *cobra.Command) ([]relayer.CreateRequest, error) {
	data, err := c.readFile(command)
	if err != nil {
		return nil, err
	}
	var lookup func(string) (string, bool)
	if c.expandEnv {
		lookup = os.LookupEnv
	}
	config, err := plan.Parse(data, lookup)
	if err != nil {
		// The prefix of a ValidationError is about a single relayer.
		return nil, fmt.Errorf("--file: %s", strings.TrimPrefix(err.Error(), relayer.ErrInvalid.Error()+": "))
	}
	if len(config.Ignored) > 0 {
		command.PrintErrf("ignored sections of the file: %q\n", config.Ignored)
	}
	if len(config.Unexpanded) > 0 {
		command.PrintErrf("not expanded without --expand-env: ${%s}\n", strings.Join(config.Unexpanded, "} ${"))
	}
	return config.Relayers, nil
}

func (c *planConfig) readFile(command *cobra.Command) ([]byte, error) {
	defer endBySignal(command.Context())()
	if c.file == "-" { // the standard input
		return io.ReadAll(command.InOrStdin())
	}
	return readFile("--file", c.file, "write one with relayerd export")
}

// endBySignal makes a signal end the process until the returned function is called: a read of a
// terminal or a pipe cannot be canceled.
func endBySignal(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { os.Exit(1) })
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (c *planConfig) apply(command *cobra.Command, _ []string) error {
	if !c.yes && (c.file == "-" || !isTerminal(command.InOrStdin())) {
		return errors.New("the standard input is not a terminal: use --yes to apply without confirmation")
	}
	changes, err := c.show(command)
	if err != nil {
		return err
	}
	if !changes.HasChanges() {
		return changes.Err()
	}
	if !c.yes && !confirm(command) {
		return errors.New("not confirmed: nothing was changed")
	}
	results, err := changes.Apply(command.Context(), relayer.Reason(cmp.Or(c.reason, printable(filepath.Base(c.file)))))
	if len(results) == 0 {
		return err
	}
	counts := make(map[plan.Action]int)
	for _, result := range results {
		if result.Err == nil {
			counts[result.Action]++
		}
	}
	_, printErr := fmt.Fprintf(command.OutOrStdout(), "%d created, %d updated, %d deleted\n", counts[plan.Create], counts[plan.Update], counts[plan.Delete])
	return errors.Join(err, printErr)
}

func confirm(command *cobra.Command) bool {
	defer endBySignal(command.Context())()
	command.PrintErr("Make these changes? Type yes: ")
	answer, _ := bufio.NewReader(command.InOrStdin()).ReadString('\n')
	return strings.TrimSpace(answer) == "yes"
}

func (c *planConfig) export(command *cobra.Command, _ []string) error {
	registry, selector, err := c.open()
	if err != nil {
		return err
	}
	file, err := plan.Export(command.Context(), registry, selector)
	if err != nil {
		return err
	}
	_, err = printableJSON{command.OutOrStdout()}.Write(file)
	return err
}
