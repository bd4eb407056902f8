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

// copyAll adds the relayers that an earlier run has not copied, and verifies all.
func copyAll(ctx context.Context, destination, source relayer.Store, shown *progress) error {
	err := transfer.Copy(ctx, destination, source, transfer.WithProgress(shown.report))
	shown.endLine()
	if err != nil {
		return copyError(ctx, err, shown.last)
	}
	shown.logger.Info("copied", "relayers", shown.last.total)
	return nil
}

func copyError(ctx context.Context, err error, last stageProgress) error {
	const again = "run the same command again to resume"
	switch {
	case errors.Is(err, transfer.ErrDiffers):
		return fmt.Errorf("%w (if everything was copied before, do not copy again)", err)
	case errors.Is(err, relayer.ErrCorrupt):
		// It can also match ErrUnavailable, but a retry does not help.
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted while %s, at %d of %d: %s", last.stage, last.done, last.total, again)
	case errors.Is(err, relayer.ErrUnavailable), errors.Is(err, relayer.ErrOutcomeUnknown):
		return fmt.Errorf("%w (%s)", err, again)
	}
	return err
}

// stageProgress is how far a stage of a copy is.
type stageProgress struct {
	stage       string
	done, total int
}

// progress shows the progress of a copy at the start and the end of each stage, and
// at intervals in between: on a terminal in one line, otherwise in the log.
type progress struct {
	terminal   io.Writer // nil if there is none
	logger     *slog.Logger
	interval   time.Duration
	last       stageProgress
	shownAt    time.Time
	isLineOpen bool
}

func newProgress(stderr io.Writer, logger *slog.Logger) *progress {
	if isTerminal(stderr) {
		return &progress{terminal: stderr, logger: logger, interval: 100 * time.Millisecond}
	}
	return &progress{logger: logger, interval: time.Second}
}

// report is called by [transfer.Copy].
func (p *progress) report(stage string, done, total int) {
	isBetween := stage == p.last.stage && done < total
	p.last = stageProgress{stage, done, total}
	if isBetween && time.Since(p.shownAt) < p.interval {
		return
	}
	p.shownAt = time.Now()
	if p.terminal == nil {
		p.logger.Info(stage, "done", done, "total", total)
		return
	}
	fmt.Fprintf(p.terminal, "\r%s %d of %d", pastTense[stage], done, total)
	p.isLineOpen = true
	if done == total {
		p.endLine()
	}
}

var pastTense = map[string]string{
	"checking":  "checked",
	"copying":   "copied",
	"verifying": "verified",
}

func (p *progress) endLine() {
	if p.isLineOpen {
		fmt.Fprintln(p.terminal)
	}
	p.isLineOpen = false
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
