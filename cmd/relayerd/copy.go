package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
)

// openFilled opens the store of -db, and copies into it every relayer of the one
// of -copy-from. That is opened first: where it is missing, no new file is made.
func openFilled(ctx context.Context, c config, stderr io.Writer, logger *slog.Logger) (relayer.Store, func() error, error) {
	if c.copyFrom == "" {
		return openStore(ctx, c.database)
	}
	source, closeSource, err := openSource(ctx, c.copyFrom)
	if err != nil {
		return nil, nil, fmt.Errorf("-copy-from: %w", err)
	}
	// Nothing was written to it that could be lost.
	defer func() { _ = closeSource() }()

	store, closeStore, err := openStore(ctx, c.database)
	if err != nil {
		return nil, nil, err
	}
	if err := copyAll(ctx, store, source, newProgress(stderr, logger)); err != nil {
		return nil, nil, errors.Join(err, closeStore())
	}
	return store, closeStore, nil
}

// copyAll copies what an earlier start has not copied yet, and checks all of it.
func copyAll(ctx context.Context, destination, source relayer.Store, shown *progress) error {
	err := transfer.Copy(ctx, destination, source, transfer.WithProgress(shown.report))
	shown.end()
	if err != nil {
		return copyError(ctx, err, shown.last)
	}
	shown.logger.Info("copied", "relayers", shown.last.Total)
	return nil
}

// copyError says what to do about a copy that failed.
func copyError(ctx context.Context, err error, last transfer.Progress) error {
	const again = "start the server again with the same flags to go on"
	switch {
	case errors.Is(err, transfer.ErrDiffers):
		return fmt.Errorf("-copy-from: %w (leave it out if everything has been copied before)", err)
	case errors.Is(err, relayer.ErrCorrupt):
		// It may match what is worth another start as well.
		return fmt.Errorf("-copy-from: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("-copy-from: interrupted while %s, at %d of %d: %s", last.Stage, last.Done, last.Total, again)
	case errors.Is(err, relayer.ErrUnavailable), errors.Is(err, relayer.ErrOutcomeUnknown):
		return fmt.Errorf("-copy-from: %w (%s)", err, again)
	}
	return fmt.Errorf("-copy-from: %w", err)
}

// progress tells of a copy at the start and the end of each of its stages, and
// now and then in between: on a terminal by a line that is written over, elsewhere
// in the log.
type progress struct {
	terminal   io.Writer // nil where there is none
	logger     *slog.Logger
	pause      time.Duration
	last       transfer.Progress
	told       time.Time
	isLineOpen bool
}

func newProgress(stderr io.Writer, logger *slog.Logger) *progress {
	if isTerminal(stderr) {
		return &progress{terminal: stderr, logger: logger, pause: 100 * time.Millisecond}
	}
	return &progress{logger: logger, pause: time.Second}
}

// report is called by [transfer.Copy].
func (p *progress) report(now transfer.Progress) {
	isBetween := now.Stage == p.last.Stage && now.Done < now.Total
	p.last = now
	if isBetween && time.Since(p.told) < p.pause {
		return
	}
	p.told = time.Now()
	if p.terminal == nil {
		p.logger.Info(string(now.Stage), "done", now.Done, "total", now.Total)
		return
	}
	p.overwrite(now)
}

var doneIn = map[transfer.Stage]string{
	transfer.Checking:  "checked",
	transfer.Copying:   "copied",
	transfer.Verifying: "verified",
}

func (p *progress) overwrite(now transfer.Progress) {
	fmt.Fprintf(p.terminal, "\r%s %d of %d", doneIn[now.Stage], now.Done, now.Total)
	p.isLineOpen = true
	if now.Done == now.Total {
		p.end()
	}
}

// end leaves the line, so that what is written next gets one of its own.
func (p *progress) end() {
	if p.isLineOpen {
		fmt.Fprintln(p.terminal)
	}
	p.isLineOpen = false
}

// isTerminal tells whether a person may be watching.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
