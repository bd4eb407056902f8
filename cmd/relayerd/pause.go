package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// bulk changes all relayers of a selection.
type bulk func(server *client.Client, ctx context.Context, selector relayer.Selector, options ...relayer.WriteOption) (relayer.BulkResult, error)

func newPauseCommand(apiKey string) *cobra.Command {
	return newBulkCommand(apiKey, "paused", (*client.Client).PauseAll, new(string), &cobra.Command{
		Use: "pause", Short: "Pause all relayers of a selection",
		Example: "  relayerd pause --server https://registry.internal --selector network=sepolia --reason 'incident 42'",
		Long: `Pause pauses every relayer that --selector selects, by one request, and prints the ID of the
request, with which resume resumes what it has paused.

` + serverHelp,
	})
}

func newResumeCommand(apiKey string) *cobra.Command {
	var pausedBy string
	command := newBulkCommand(apiKey, "resumed", (*client.Client).ResumeAll, &pausedBy, &cobra.Command{
		Use: "resume", Short: "Resume all relayers of a selection, or what a request has paused",
		Example: "  relayerd resume --server https://registry.internal --paused-by 9f3k2d",
		Long: `Resume resumes every relayer that --selector selects. With --paused-by it resumes only those
that this request has paused: others, and those that were paused again since, stay paused.

` + serverHelp,
	})
	command.Flags().StringVar(&pausedBy, "paused-by", "", "`ID` of the request whose pauses are undone, as pause prints it")
	return command
}

// newBulkCommand adds the flags to a command, and what it does.
func newBulkCommand(apiKey, done string, change bulk, pausedBy *string, command *cobra.Command) *cobra.Command {
	var t target
	var s selection
	var reason string
	var all bool
	command.RunE = func(command *cobra.Command, _ []string) error {
		selector, err := s.selector()
		if err != nil {
			return err
		}
		server, err := t.open(apiKey)
		if err != nil {
			return err
		}
		options := []relayer.WriteOption{relayer.Reason(reason)}
		if *pausedBy != "" {
			options = append(options, relayer.PausedBy(*pausedBy))
		}
		switch {
		case s.terms != "":
		case all, *pausedBy != "":
			options = append(options, relayer.AllRelayers())
		default:
			return errors.New("--selector is required: name the relayers, such as with network=sepolia, or use --all")
		}
		result, err := change(server, command.Context(), selector, options...)
		if errors.Is(err, relayer.ErrOutcomeUnknown) {
			return fmt.Errorf("request %s may have %s relayers: %w", result.RequestID, done, err)
		}
		if err != nil {
			return err
		}
		command.Printf("%s %s, %d unchanged, request %s\n", done, relayers(result.Changed), result.Unchanged, printable(result.RequestID))
		for _, id := range slices.Sorted(maps.Keys(result.Failed)) {
			err = errors.Join(err, fmt.Errorf("%s: %w", id, result.Failed[id]))
		}
		return err
	}
	t.addFlags(command)
	require(command, "server")
	s.addFlag(command)
	command.Flags().StringVar(&reason, "reason", "", "`text` to store with each change, at most 256 characters")
	command.Flags().BoolVar(&all, "all", false, "select all relayers, without --selector")
	command.MarkFlagsMutuallyExclusive("all", "selector")
	return command
}
