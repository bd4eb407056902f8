package powerloss

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
