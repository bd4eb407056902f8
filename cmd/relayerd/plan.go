package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

// errChangesPending makes plan exit with status 2.
var errChangesPending = errors.New("changes are pending")

const standardInput = "-"

type planConfig struct {
	target
	selection
	plan.Options
	file      string
	expandEnv bool
	yes       bool
	reason    string
}

func newPlanCommand(apiKey string) *cobra.Command {
	var c planConfig
	command := &cobra.Command{
		Use:     "plan",
		Example: "  relayerd plan -f relayers.json --server https://registry.internal",
		Short:   "Show the changes that a configuration file makes",
		Long: `Plan compares a configuration file with the relayers of a server. The file is JSON
with an array "relayers", such as the config.json of OpenZeppelin Relayer. Plan changes
nothing. Its exit status is 0 without changes, 2 with changes, and 1 after an error.

` + serverHelp,
		RunE: func(command *cobra.Command, _ []string) error {
			hasChanges := false
			err := c.run(command, apiKey, func(changes *plan.Plan) error {
				hasChanges = changes.HasChanges()
				return changes.Err()
			})
			if err == nil && hasChanges {
				return errChangesPending
			}
			return err
		},
	}
	c.addFlags(command)
	return command
}

func newApplyCommand(apiKey string) *cobra.Command {
	var c planConfig
	command := &cobra.Command{
		Use: "apply",
		Example: `  relayerd apply -f relayers.json --server https://registry.internal
  relayerd apply -f relayers.json --server https://registry.internal --yes   # in a pipeline`,
		Short: "Make the changes of a configuration file",
		Long: `Apply shows the plan of a configuration file, asks for confirmation, and makes the
changes. Without a terminal, as in a pipeline, it needs --yes. A relayer that another
writer has changed since the plan is not changed. Run apply again to resume after a
failure. Changes that the registry rejects do not prevent the others, except deletes.

` + serverHelp,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := c.checkConfirmation(command.InOrStdin()); err != nil {
				return err
			}
			return c.run(command, apiKey, func(changes *plan.Plan) error {
				return c.apply(command, changes)
			})
		},
	}
	c.addFlags(command)
	command.Flags().BoolVar(&c.yes, "yes", false, "do not ask for confirmation")
	command.Flags().StringVar(&c.reason, "reason", "", "`text` to store with each change, at most 256 characters (default the name of the file)")
	return command
}

func (c *planConfig) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&c.file, "file", "f", "", "configuration `file`; - is the standard input")
	flags.BoolVar(&c.expandEnv, "expand-env", false, "replace ${NAME} in RPC URLs and header values by environment variables")
	flags.BoolVar(&c.Prune, "prune", false, "delete the relayers that the file does not list, of those that --selector selects")
	flags.IntVar(&c.MaxDeletes, "max-deletes", 0, "permit --prune to delete this `number` of relayers; without it at most 10, and none if the file is empty")
	flags.BoolVar(&c.KeepPaused, "keep-paused", false, "leave paused of existing relayers as it is")
	c.target.addFlags(command)
	require(command, "file", "server")
	c.selection.addFlag(command)
}

// run makes a plan, prints it, and passes it to act.
func (c *planConfig) run(command *cobra.Command, apiKey string, act func(*plan.Plan) error) (err error) {
	ctx := command.Context()
	if command.Flags().Changed("max-deletes") && (c.MaxDeletes < 1 || !c.Prune) {
		return errors.New("--max-deletes must be 1 or more, and requires --prune")
	}
	desired, err := c.read(ctx, command.InOrStdin(), command.ErrOrStderr())
	if err != nil {
		return err
	}
	if c.Selector, err = c.selector(); err != nil {
		return err
	}
	registry, err := c.open(apiKey)
	if err != nil {
		return err
	}
	defer func() { err = c.explain(err) }()
	changes, err := plan.New(ctx, registry, desired, c.Options)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(command.OutOrStdout(), changes); err != nil {
		return fmt.Errorf("the plan was not shown, and nothing was changed: %w", err)
	}
	return act(changes)
}

// read returns the relayers of the file, and prints which parts of it have no effect.
func (c *planConfig) read(ctx context.Context, stdin io.Reader, stderr io.Writer) ([]relayer.CreateRequest, error) {
	data, err := readInput(ctx, func() ([]byte, error) { return c.readFile(stdin) })
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
		problem := "--file: " + strings.TrimPrefix(err.Error(), relayer.ErrInvalid.Error()+": ")
		if !c.expandEnv && bytes.Contains(data, []byte("${")) {
			problem += " (${NAME} is not expanded without --expand-env)"
		}
		return nil, errors.New(problem)
	}
	if len(config.Ignored) > 0 {
		fmt.Fprintf(stderr, "ignored sections of the file: %q\n", config.Ignored)
	}
	if len(config.Unexpanded) > 0 {
		fmt.Fprintf(stderr, "not expanded without --expand-env: ${%s}\n", strings.Join(config.Unexpanded, "} ${"))
	}
	return config.Relayers, nil
}

func (c *planConfig) readFile(stdin io.Reader) ([]byte, error) {
	if c.file == standardInput {
		return io.ReadAll(stdin)
	}
	if err := checkFile("--file", c.file); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(c.file)
	if err != nil {
		return nil, inputError("--file", c.file, "write one with relayerd export", err)
	}
	return data, nil
}

// checkConfirmation returns an error if apply could not ask.
func (c *planConfig) checkConfirmation(stdin io.Reader) error {
	if c.yes {
		return nil
	}
	if c.file == standardInput {
		return errors.New("--file - needs --yes: the standard input is not free for the confirmation")
	}
	if !isTerminal(stdin) {
		return errors.New("the standard input is not a terminal: use --yes to apply without confirmation")
	}
	return nil
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	// The null device is the input of a service, and the output of a quiet script.
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

func (c *planConfig) apply(command *cobra.Command, changes *plan.Plan) error {
	if !changes.HasChanges() {
		return changes.Err()
	}
	if !c.yes {
		if err := confirm(command); err != nil {
			return err
		}
	}
	reason := filepath.Base(c.file)
	if c.file == standardInput {
		reason = "standard input"
	}
	results, err := changes.Apply(command.Context(), plan.ApplyOptions{Reason: cmp.Or(c.reason, reason)})
	if len(results) == 0 {
		return err
	}
	counts, canResume := make(map[plan.Action]int), false
	for _, result := range results {
		if result.Err != nil {
			// An invalid relayer is invalid again.
			canResume = canResume || !errors.Is(result.Err, relayer.ErrInvalid)
			continue
		}
		counts[result.Action]++
	}
	if canResume {
		err = errors.Join(err, errors.New("run apply again to resume"))
	}
	_, printErr := fmt.Fprintf(command.OutOrStdout(), "%d created, %d updated, %d deleted\n", counts[plan.Create], counts[plan.Update], counts[plan.Delete])
	return errors.Join(err, printErr)
}

func confirm(command *cobra.Command) error {
	fmt.Fprint(command.ErrOrStderr(), "Make these changes? Type yes: ")
	answer, err := readInput(command.Context(), func() ([]byte, error) {
		return bufio.NewReader(command.InOrStdin()).ReadBytes('\n')
	})
	if errors.Is(err, context.Canceled) {
		return err
	}
	if string(bytes.TrimSpace(answer)) != "yes" {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// readInput calls read, and waits until it ends or ctx is done: a read of a terminal or
// pipe cannot be canceled.
func readInput(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	var data []byte
	done := make(chan error, 1)
	go func() {
		var err error
		data, err = read()
		done <- err
	}()
	select {
	case err := <-done:
		return data, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func newExportCommand(apiKey string) *cobra.Command {
	var t target
	var s selection
	command := &cobra.Command{
		Use:     "export",
		Example: "  relayerd export --server https://registry.internal --selector label.team=payments",
		Short:   "Print the configuration file of a server",
		Long: `Export prints the relayers of a server as a configuration file for plan and apply, in
creation order. RPC URLs are masked: plan and apply keep the stored URL of a masked one.

` + serverHelp,
		RunE: func(command *cobra.Command, _ []string) error {
			selector, err := s.selector()
			if err != nil {
				return err
			}
			registry, err := t.open(apiKey)
			if err != nil {
				return err
			}
			file, err := plan.Export(command.Context(), registry, selector)
			if err != nil {
				return t.explain(err)
			}
			if _, err := (jsonWriter{command.OutOrStdout()}).Write(file); err != nil {
				return err
			}
			return s.warn(command.ErrOrStderr(), file)
		},
	}
	t.addFlags(command)
	require(command, "server")
	s.addFlag(command)
	return command
}

// selection holds the flag that limits a command to some relayers.
type selection struct{ terms string }

func (s *selection) addFlag(command *cobra.Command) {
	command.Flags().StringVar(&s.terms, "selector", "", "limit the command to the relayers with these `terms`, such as network=sepolia,label.team=payments|risk")
}

func (s *selection) selector() (relayer.Selector, error) {
	selector, err := relayer.ParseSelector(s.terms)
	if err != nil {
		return selector, fmt.Errorf("--selector: %s", strings.TrimPrefix(err.Error(), relayer.ErrInvalid.Error()+": "))
	}
	return selector, nil
}

// warn prints warnings about an exported file: the selection is empty, or URLs do not look masked.
func (s *selection) warn(stderr io.Writer, file []byte) error {
	config, err := plan.Parse(file, nil)
	if err != nil {
		return err
	}
	if len(config.Relayers) == 0 && s.terms != "" {
		fmt.Fprintf(stderr, "no relayer matches --selector %s\n", printable(s.terms))
	}
	count := 0
	for _, req := range config.Relayers {
		for _, endpoint := range req.CustomRPCURLs {
			if !endpoint.URL.IsMasked() {
				count++
			}
		}
	}
	if count > 0 {
		fmt.Fprintf(stderr, "%d RPC URLs have no path: the server does not show whether they have user information\n", count)
	}
	return nil
}
