package bolt_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// A commit of unknown outcome is reported to watchers when its recovery succeeds, and not
// as a gap.
func TestWatch_UnknownOutcome(t *testing.T) {
	store, _, repair := failedRecovery(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changes := store.Watch(ctx, "")
	if _, err := store.Get(ctx, "unknown"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("before the recovery: error is %v, want %v", err, relayer.ErrNotFound)
	}
	repair()
	if err := store.Ready(ctx); err != nil {
		t.Errorf("Ready: %v", err)
	}
	if _, err := store.Get(ctx, "unknown"); err != nil {
		t.Errorf("after the recovery: %v", err)
	}
	for change, err := range changes {
		if change.Kind == relayer.ChangeHeartbeat {
			continue
		}
		if err != nil || change.Record.ID != "unknown" || change.Record.Revision != 2 {
			t.Errorf("change of %q at %d, error %v", change.Record.ID, change.Record.Revision, err)
		}
		break
	}
}

// Close does not wait for a backup. The backup completes if it has read the history.
func TestClose_BackupRunning(t *testing.T) {
	t.Run("after the history", func(t *testing.T) { closeInBackup(t, 10, nil) })
	t.Run("within the history", func(t *testing.T) { closeInBackup(t, 600, relayer.ErrUnavailable) }) // it is read in steps
}

func closeInBackup(t *testing.T, changes int, want error) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	createAll(t, store, 0, changes)
	paused := newPausingContext(t)
	copied := make(chan error, 1)
	go func() { copied <- store.Backup(paused, path+".copy") }()
	<-paused.reached
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if err := open(t, path, bolt.WithLockTimeout(0)).Close(); err != nil {
		t.Error(err)
	}
	close(paused.open)
	wantError(t, <-copied, want)
	if want != nil {
		wantNoOtherFiles(t, path)
		return
	}
	if err := open(t, path+".copy").Close(); err != nil {
		t.Error(err)
	}
}
