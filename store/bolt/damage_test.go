package bolt_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// A commit of unknown outcome is reported to watchers when its recovery succeeds, and not
// as a gap.
func TestWatch_UnknownOutcome(t *testing.T) {
	store, _, repair := failedRecovery(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	changes := store.Watch(ctx, "")
	wantError(t, errorOf(store.Get(ctx, "unknown")), relayer.ErrNotFound) // before the recovery
	repair()
	must(t, store.Ready(ctx))
	must(t, errorOf(store.Get(ctx, "unknown"))) // after the recovery
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
	store, path := openTemp(t)
	createAll(t, store, 0, changes)
	paused := newPausingContext(t)
	copied := inBackground(func() error { return store.Backup(paused, path+".copy") })
	<-paused.reached
	must(t, store.Close())
	must(t, open(t, path).Close())
	close(paused.open)
	wantError(t, <-copied, want)
	if want != nil {
		wantNoOtherFiles(t, path)
		return
	}
	must(t, open(t, path+".copy").Close())
}
