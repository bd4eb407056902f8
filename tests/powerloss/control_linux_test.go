package powerloss

import "testing"

// The controls break a store or the disk on purpose. Each must be caught.

func TestControl_EarlyAcknowledgement(t *testing.T) {
	newSeries(t, earlyStore, inService).wantCaught()
}

func TestControl_EngineWithoutSync(t *testing.T) {
	newSeries(t, unsyncedEngine, inService).wantCaught()
}

func TestControl_LyingDisk(t *testing.T) {
	s := newSeries(t, boltStore, inService)
	s.lies = true
	s.wantCaught()
}

// TestControl_UnsyncedDirectory runs bbolt alone, which does not sync the
// directory after it created a file.
func TestControl_UnsyncedDirectory(t *testing.T) {
	newCreationSeries(t, engineStore).wantCaught()
}

// TestControl_HeaderNotRewritten runs bbolt alone, which reuses the pages that an
// unsynced header frees.
func TestControl_HeaderNotRewritten(t *testing.T) {
	newSeries(t, engineStore, killedBeforeHeaderSync).wantCaught()
	newSeries(t, engineStore, failedHeaderSync).wantCaught()
}
