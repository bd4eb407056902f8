package powerloss

import "testing"

// The controls break the store or the disk on purpose. Each must be caught.

func TestControl_EarlyAcknowledgement(t *testing.T) {
	s := newSeries(t, inService)
	s.early = true
	s.wantLossCaught()
}

func TestControl_LyingDisk(t *testing.T) {
	s := newSeries(t, inService)
	s.lies = []kind{syncing, syncingHeader, syncingNames}
	s.wantCaught()
}

// TestControl_UnsyncedDirectory: a store that does not sync the directory after it created its file.
func TestControl_UnsyncedDirectory(t *testing.T) {
	s := newCreationSeries(t, firstCreation)
	s.lies = []kind{syncingNames}
	s.wantLossCaught()
}

// TestControl_HeaderNotRewritten: a store that reuses the pages that an unsynced header frees.
func TestControl_HeaderNotRewritten(t *testing.T) {
	for _, scenario := range []func(*round){killedBeforeHeaderSync, failedHeaderSync} {
		s := newSeries(t, scenario)
		s.dropsRewrite = true
		s.wantCaught()
	}
}
