package main

import (
	"cmp"
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

func newHistoryCommand(apiKey string) *cobra.Command {
	from, db := target{}, database{"--db", defaultDatabase}
	var query relayer.HistoryQuery
	var since, field string
	var limit int
	var isJSON bool
	command := &cobra.Command{
		Use:     "history [RELAYER_ID]",
		Args:    cobra.MaximumNArgs(1),
		Example: "  relayerd history treasury --server https://registry.internal\n  relayerd history --since 14:00 --actor alice",
		Short:   "Show who changed relayers, when and why",
		Long: `History prints changes, newest first: of one relayer, or of all. A relayer that was
deleted keeps its history for as long as the database retains it.

` + serverHelp,
		RunE: func(command *cobra.Command, args []string) (err error) {
			if query.ID = strings.Join(args, ""); len(args) > 0 && !relayer.IsID(query.ID) { // it may be a connection string
				return errors.New("RELAYER_ID must be 1 to 64 characters of A-Z a-z 0-9 _ and -")
			}
			if query.Since, err = parseSince(since, time.Now()); err != nil {
				return err
			}
			registry, closeRegistry, err := from.orDatabase(command.Context(), db, apiKey)
			if err != nil {
				return err
			}
			defer closeRegistry()
			var found []relayer.Change
			for isFirst := true; isFirst || query.Before > 0 && len(found) < limit; isFirst = false {
				var page []relayer.Change
				if page, query.Before, err = registry.History(command.Context(), query); err != nil {
					return err
				}
				for _, change := range page {
					if field == "" || slices.Contains(changedFields(change), field) {
						found = append(found, change)
					}
				}
			}
			found = found[:min(max(limit, 0), len(found))]
			if isJSON {
				return encodeHistory(command.OutOrStdout(), found)
			}
			return printHistory(command.OutOrStdout(), found)
		},
	}
	flags := command.Flags()
	flags.StringVar(&since, "since", "", "changes from this `time` on: 14:00 of today, 2026-01-02, 2026-01-02T14:00:00Z, or 2h ago")
	flags.StringVar(&query.Actor, "actor", "", "changes by this `actor`, such as the name of a token")
	flags.StringVar((*string)(&query.Action), "action", "", "changes by this `action`, such as pause")
	flags.StringVar(&field, "changed", "", "changes of this `field`, such as paused or policies.gas_price_cap")
	flags.IntVar(&limit, "limit", 50, "print at most this `number` of changes")
	flags.BoolVar(&isJSON, "json", false, "print one JSON object for each change, with the relayer after it")
	flags.StringVar(&db.name, "db", db.name, "existing database `file` that no server has open, or a postgres:// URL")
	from.addFlags(command)
	command.MarkFlagsMutuallyExclusive("db", "server")
	return command
}

// parseSince returns the zero time for the empty text.
func parseSince(text string, now time.Time) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if ago, err := time.ParseDuration(strings.TrimSuffix(text, " ago")); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if at, err := time.ParseInLocation("2006-01-02 15:04", now.Format(time.DateOnly+" ")+text, now.Location()); err == nil {
		return at, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, time.DateTime} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	return at, fmt.Errorf("--since %q must be a time such as 14:00, 2026-01-02 or 2026-01-02T14:00:00Z, or a duration such as 2h or 2h ago", text)
}

func encodeHistory(out io.Writer, changes []relayer.Change) error {
	encoder := json.NewEncoder(printableJSON{out})
	encoder.SetEscapeHTML(false)
	for _, c := range changes {
		if err := encoder.Encode(map[string]any{
			"revision": c.Info.Revision, "id": c.ID, "time": c.Info.Time, "actor": c.Info.Actor, "action": c.Info.Action,
			"reason": c.Info.Reason, "request_id": c.Info.RequestID, "changed": c.Info.Changed, "relayer": c.Relayer,
		}); err != nil {
			return err
		}
	}
	return nil
}

func printHistory(out io.Writer, changes []relayer.Change) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tREVISION\tRELAYER\tACTOR\tACTION\tCHANGED\tREASON")
	for _, c := range changes {
		changed := slices.Clone(changedFields(c))
		if i := slices.Index(changed, "paused"); i >= 0 && c.Relayer != nil {
			changed[i] = fmt.Sprint("paused=", c.Relayer.Paused)
		}
		fmt.Fprintf(table, "%s\t%d", c.Info.Time.Local().Format(time.DateTime), c.Info.Revision)
		for _, text := range []string{c.ID, c.Info.Actor, string(c.Info.Action), strings.Join(changed, " "), c.Info.Reason} {
			fmt.Fprint(table, "\t", printable(cmp.Or(text, "-")))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// changedFields returns the fields that a change has changed, and paused of a relayer that was
// created paused.
func changedFields(c relayer.Change) []string {
	if c.Info.Action == relayer.ActionCreate && c.Relayer != nil && c.Relayer.Paused {
		return []string{"paused"}
	}
	return c.Info.Changed
}
