package crash

import "testing"

func TestPowerLoss_InService(t *testing.T) {
	newSeries(t, inService).wantNothingLost()
}

func TestPowerLoss_FirstCreation(t *testing.T) {
	newCreationSeries(t, firstCreation).wantNothingLost()
}

func TestPowerLoss_KilledBeforeDirectorySync(t *testing.T) {
	newCreationSeries(t, killedBeforeDirectorySync).wantNothingLost()
}

func TestPowerLoss_KilledBeforeHeaderSync(t *testing.T) {
	newSeries(t, killedBeforeHeaderSync).wantNothingLost()
}

func TestPowerLoss_FailedHeaderSync(t *testing.T) {
	newSeries(t, failedHeaderSync).wantNothingLost()
}

// The controls break the store or the disk on purpose. Each must be caught.

func TestControl_LyingDisk(t *testing.T) {
	s := newSeries(t, inService)
	s.lies = []kind{syncing, syncingHeader, syncingNames}
	s.wantCaught(damageTally.damage)
}

// TestControl_UnsyncedDirectory: a store that does not sync the directory after it created its file.
func TestControl_UnsyncedDirectory(t *testing.T) {
	s := newCreationSeries(t, firstCreation)
	s.lies = []kind{syncingNames}
	s.wantCaught(func(c damageTally) int { return c.lost })
}

// TestControl_HeaderNotRewritten: a store that reuses the pages that an unsynced header frees.
func TestControl_HeaderNotRewritten(t *testing.T) {
	for _, scenario := range []func(*round){killedBeforeHeaderSync, failedHeaderSync} {
		s := newSeries(t, scenario)
		s.dropsRewrite = true
		s.wantCaught(damageTally.damage)
	}
}
