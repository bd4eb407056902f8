package powerloss

import "testing"

func TestPowerLoss_InService(t *testing.T) {
	newSeries(t, boltStore, inService).wantNothingLost()
}

func TestPowerLoss_FirstCreation(t *testing.T) {
	newCreationSeries(t, boltStore, firstCreation).wantNothingLost()
}

func TestPowerLoss_KilledBeforeDirectorySync(t *testing.T) {
	newCreationSeries(t, boltStore, killedBeforeDirectorySync).wantNothingLost()
}

func TestPowerLoss_KilledBeforeHeaderSync(t *testing.T) {
	newSeries(t, boltStore, killedBeforeHeaderSync).wantNothingLost()
}

func TestPowerLoss_FailedHeaderSync(t *testing.T) {
	newSeries(t, boltStore, failedHeaderSync).wantNothingLost()
}
