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
	from, db, since := target{apiKey: apiKey}, database{"--db", defaultDatabase}, ""
	query, field, limit, isJSON := relayer.HistoryQuery{}, "", 0, false
	command := &cobra.Command{Use: "history [RELAYER_ID]", Args: cobra.MaximumNArgs(1), Short: "Show who changed relayers, when and why",
		Example: "  relayerd history treasury --server https://registry.internal\n  relayerd history --since 14:00 --actor alice",
		Long: `History prints changes, newest first: of one relayer, or of all. A relayer that was
deleted keeps its history for as long as the database retains it.`}
	command.RunE = func(command *cobra.Command, args []string) (err error) {
		if query.ID = strings.Join(args, ""); len(args) > 0 && !relayer.IsID(query.ID) { // it may be a connection string
			return errors.New("RELAYER_ID must be 1 to 64 characters of A-Z a-z 0-9 _ and -")
		}
		if query.Since, err = parseSince(since, time.Now()); err != nil {
			return err
		}
		if limit < 1 {
			return errors.New("--limit must be 1 or more")
		}
		registry, closeRegistry, err := from.orDatabase(command.Context(), db)
		if err != nil {
			return err
		}
		defer closeRegistry()
		out := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
		if !isJSON {
			fmt.Fprintln(out, "TIME\tREVISION\tRELAYER\tACTOR\tACTION\tCHANGED\tREASON")
		}
		isEmpty := true
		for isFirst := true; err == nil && limit > 0 && (isFirst || query.Before > 0); isFirst = false {
			var page []relayer.Change
			page, query.Before, err = registry.History(command.Context(), query)
			for _, c := range page {
				changed := c.Info.Changed
				if c.Info.Action == relayer.ActionCreate && c.Relayer != nil && c.Relayer.Paused {
					changed = []string{"paused"} // it counts as a pause
				}
				if limit > 0 && (field == "" || slices.Contains(changed, field)) {
					limit, isEmpty = limit-1, false
					err = cmp.Or(err, printChange(out, c, changed, isJSON))
				}
			}
		}
		if err == nil && isEmpty {
			command.PrintErrln("no such changes")
		}
		return cmp.Or(err, out.Flush())
	}
	flags := command.Flags()
	flags.StringVar(&since, "since", "", "changes from this `time` on: 14:00 of today, 2026-01-02, 2026-01-02T14:00:00Z, or 2h for two hours ago")
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

// printChange prints a line of JSON, or a row of a table.
func printChange(out io.Writer, c relayer.Change, changed []string, isJSON bool) error {
	if isJSON {
		return json.NewEncoder(printableJSON{out}).Encode(struct {
			relayer.ChangeInfo
			ID      string           `json:"id"`
			Relayer *relayer.Relayer `json:"relayer"`
		}{c.Info, c.ID, c.Relayer})
	}
	if i := slices.Index(changed, "paused"); i >= 0 && c.Relayer != nil {
		changed[i] = fmt.Sprint("paused=", c.Relayer.Paused)
	}
	row := []string{c.Info.Time.Local().Format(time.DateTime), fmt.Sprint(c.Info.Revision), c.ID, c.Info.Actor, string(c.Info.Action)}
	row = append(row, strings.Join(changed, " "), c.Info.Reason)
	for i, text := range row {
		row[i] = printable(cmp.Or(text, "-"))
	}
	_, err := fmt.Fprintln(out, strings.Join(row, "\t"))
	return err
}

// parseSince returns the zero time for the empty text.
func parseSince(text string, now time.Time) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if ago, err := time.ParseDuration(strings.TrimSuffix(text, " ago")); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	today := now.Format(time.DateOnly + " ")
	for layout, full := range map[string]string{time.RFC3339: text, time.DateTime: text, time.DateOnly: text, "2006-01-02 15:04": today + text} {
		if at, err := time.ParseInLocation(layout, full, now.Location()); err == nil {
			return at, nil
		}
	}
	return at, fmt.Errorf("--since %q must be a time such as 14:00, 2026-01-02 or 2026-01-02T14:00:00Z, or a duration such as 2h", text)
}
