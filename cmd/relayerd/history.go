package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-relayer/relayer"
)

// historyConfig has the flags of history.
type historyConfig struct {
	target
	id                     string
	actor, action, changed string
	since                  string
	limit                  int
	isJSON                 bool
}

func newHistoryCommand(apiKey string) *cobra.Command {
	var c historyConfig
	command := &cobra.Command{
		Use:     "history [RELAYER_ID]",
		Args:    cobra.MaximumNArgs(1),
		Example: "  relayerd history treasury --server https://registry.internal\n  relayerd history --since 14:00 --actor alice",
		Short:   "Show who changed relayers, when and why",
		Long: `History prints changes, newest first: of one relayer, or of all. A relayer that was
deleted keeps its history for as long as the database retains it.

` + serverHelp,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				c.id = args[0]
			}
			return c.run(command, apiKey)
		},
	}
	flags := command.Flags()
	flags.StringVar(&c.since, "since", "", "changes from this `time` on: 14:00 of today, 2026-01-02, 2026-01-02T14:00:00Z, or 2h ago")
	flags.StringVar(&c.actor, "actor", "", "changes by this `actor`, such as the name of a token")
	flags.StringVar(&c.action, "action", "", "changes by this `action`, such as pause")
	flags.StringVar(&c.changed, "changed", "", "changes of this `field`, such as paused or policies.gas_price_cap")
	flags.IntVar(&c.limit, "limit", 50, "print at most this `number` of changes")
	flags.BoolVar(&c.isJSON, "json", false, "print one JSON object for each change, with the relayer after it")
	c.target.addFlags(command)
	return command
}

func (c *historyConfig) run(command *cobra.Command, apiKey string) (err error) {
	if c.id != "" && !relayer.IsID(c.id) {
		// It may be a connection string.
		return errors.New("RELAYER_ID must be 1 to 64 characters of A-Z a-z 0-9 _ and -")
	}
	if c.limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	since, err := parseSince(c.since, time.Now())
	if err != nil {
		return err
	}
	registry, closeRegistry, err := c.open(command.Context(), apiKey)
	if err != nil {
		return err
	}
	// The registry is only read, so that an error of the close loses nothing.
	defer func() { _, err = closeRegistry(), c.explain(err) }()
	found, err := c.read(command.Context(), registry, since)
	if err != nil {
		return err
	}
	if c.isJSON {
		return printHistoryJSON(command.OutOrStdout(), found)
	}
	return printHistory(command.OutOrStdout(), found)
}

// read returns the selected changes, newest first.
func (c *historyConfig) read(ctx context.Context, registry relayer.Registry, since time.Time) (found []relayer.Change, err error) {
	query := relayer.HistoryQuery{ID: c.id, Actor: c.actor, Action: relayer.Action(c.action), Since: since, Limit: 100}
	for {
		changes, next, err := registry.History(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, change := range changes {
			if c.changed == "" || slices.Contains(changedFields(change), c.changed) {
				found = append(found, change)
			}
			if len(found) == c.limit {
				return found, nil
			}
		}
		if query.Before = next; query.Before == 0 {
			return found, nil
		}
	}
}

// parseSince returns the zero time for the empty text.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(strings.TrimSuffix(text, " ago")); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location()), nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q must be a time such as 14:00, 2026-01-02 or 2026-01-02T14:00:00Z, or a duration such as 2h or 2h ago", text)
}

func printHistory(out io.Writer, changes []relayer.Change) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(out, "no changes")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tREVISION\tRELAYER\tACTOR\tACTION\tCHANGED\tREASON")
	for _, r := range changes {
		fmt.Fprintf(table, "%s\t%d", r.Info.Time.Local().Format(time.DateTime), r.Info.Revision)
		for _, text := range []string{r.ID, r.Info.Actor, string(r.Info.Action), changedText(r)} {
			fmt.Fprintf(table, "\t%s", printable(cmp.Or(text, "-")))
		}
		fmt.Fprintf(table, "\t%s\n", printable(r.Info.Reason))
	}
	return table.Flush()
}

// changedFields returns the fields that a change has changed, and paused of a relayer that was
// created paused.
func changedFields(r relayer.Change) []string {
	if r.Info.Action == relayer.ActionCreate && r.Relayer != nil && r.Relayer.Paused {
		return append(slices.Clip(r.Info.Changed), "paused")
	}
	return r.Info.Changed
}

// changedText returns the changed fields, with the value of a switch if the relayer is known.
func changedText(r relayer.Change) string {
	texts := slices.Clone(changedFields(r))
	for i, field := range texts {
		switch {
		case r.Relayer == nil:
		case field == "paused":
			texts[i] = fmt.Sprint("paused=", r.Relayer.Paused)
		case field == "system_disabled":
			texts[i] = fmt.Sprint("system_disabled=", r.Relayer.SystemDisabled)
		}
	}
	return strings.Join(texts, " ")
}

func printHistoryJSON(out io.Writer, changes []relayer.Change) error {
	encoder := json.NewEncoder(jsonWriter{out})
	encoder.SetEscapeHTML(false)
	for _, r := range changes {
		err := encoder.Encode(struct {
			Revision uint64           `json:"revision"`
			ID       string           `json:"id"`
			Time     time.Time        `json:"time"`
			Actor    string           `json:"actor,omitempty"`
			Action   relayer.Action   `json:"action"`
			Reason   string           `json:"reason,omitempty"`
			Changed  []string         `json:"changed,omitempty"`
			Relayer  *relayer.Relayer `json:"relayer"`
		}{r.Info.Revision, r.ID, r.Info.Time, r.Info.Actor, r.Info.Action, r.Info.Reason, r.Info.Changed, r.Relayer})
		if err != nil {
			return err
		}
	}
	return nil
}
