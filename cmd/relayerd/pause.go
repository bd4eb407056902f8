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
	command := newBulkCommand(apiKey, "paused", (*client.Client).PauseAll, nil)
	command.Use, command.Short = "pause", "Pause all relayers of a selection"
	command.Example = "  relayerd pause --server https://registry.internal --selector network=sepolia --reason 'incident 42'"
	command.Long = `Pause pauses every relayer that --selector selects, by one request, and prints the ID of the
request, with which resume resumes what it has paused.

` + serverHelp
	return command
}

func newResumeCommand(apiKey string) *cobra.Command {
	var pausedBy string
	command := newBulkCommand(apiKey, "resumed", (*client.Client).ResumeAll, &pausedBy)
	command.Use, command.Short = "resume", "Resume all relayers of a selection, or what a request has paused"
	command.Example = "  relayerd resume --server https://registry.internal --paused-by 9f3k2d"
	command.Long = `Resume resumes every relayer that --selector selects. With --paused-by it resumes only those
that this request has paused: others, and those that were paused again since, stay paused.

` + serverHelp
	command.Flags().StringVar(&pausedBy, "paused-by", "", "`ID` of the request whose pauses are undone, as pause prints it")
	return command
}

// newBulkCommand returns a command without a name and texts. pausedBy may be nil.
func newBulkCommand(apiKey, done string, change bulk, pausedBy *string) *cobra.Command {
	var t target
	var s selection
	var reason string
	var all bool
	command := &cobra.Command{RunE: func(command *cobra.Command, _ []string) error {
		selector, err := s.selector()
		if err != nil {
			return err
		}
		server, err := t.open(apiKey)
		if err != nil {
			return err
		}
		options := []relayer.WriteOption{relayer.Reason(reason)}
		if pausedBy != nil && *pausedBy != "" {
			options = append(options, relayer.PausedBy(*pausedBy))
			all = all || s.terms == ""
		}
		if !all && s.terms == "" {
			return errors.New("--selector is required: name the relayers, such as with network=sepolia, or use --all")
		}
		if all {
			options = append(options, relayer.AllRelayers())
		}
		result, err := change(server, command.Context(), selector, options...)
		if err != nil {
			if errors.Is(err, relayer.ErrOutcomeUnknown) {
				err = fmt.Errorf("request %s may have %s relayers: %w", printable(result.RequestID), done, err)
			}
			return t.explain(err)
		}
		command.Printf("%s %s, %d unchanged, request %s\n", done, relayers(result.Changed), result.Unchanged, printable(result.RequestID))
		for _, id := range slices.Sorted(maps.Keys(result.Failed)) {
			err = errors.Join(err, fmt.Errorf("%s: %w", id, result.Failed[id]))
		}
		return err
	}}
	t.addFlags(command)
	require(command, "server")
	s.addFlag(command)
	command.Flags().StringVar(&reason, "reason", "", "`text` to store with each change, at most 256 characters")
	command.Flags().BoolVar(&all, "all", false, "select all relayers, without --selector")
	command.MarkFlagsMutuallyExclusive("all", "selector")
	return command
}
