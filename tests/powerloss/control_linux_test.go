package powerloss

import "testing"

// The controls break a store or the disk on purpose. Each must be caught.

func TestControl_EarlyAcknowledgement(t *testing.T) {
	newSeries(t, earlyStore, inService).wantLossCaught()
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
	newCreationSeries(t, engineStore, firstCreation).wantLossCaught()
}

// TestControl_HeaderNotRewritten runs bbolt alone, which reuses the pages that an
// unsynced header frees.
func TestControl_HeaderNotRewritten(t *testing.T) {
	newSeries(t, engineStore, killedBeforeHeaderSync).wantCaught()
	newSeries(t, engineStore, failedHeaderSync).wantCaught()
}

// TestControl_SoundEngine: bbolt alone survives power cuts in service. What the
// other controls catch is the fault that they add.
func TestControl_SoundEngine(t *testing.T) {
	newSeries(t, engineStore, inService).wantNothingLost()
}
