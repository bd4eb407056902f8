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

// kind is a kind of change.
type kind int

const (
	writing kind = iota
	naming
	syncing
	syncingHeader // a sync that has only header pages of the database to store
	syncingNames
	anyKind
)

// fault is what the disk does instead of a change.
type fault int

const (
	none fault = iota
	cutPower
	killProcess // the process dies before the change; the disk remains on
	failSync    // the sync fails, and the unsynced changes are marked clean
	dropSync    // the same, but the sync reports success
)

// step injects a fault at the nth change of a kind.
type step struct {
	kind  kind
	nth   int
	fault fault
}

// plan is the sequence of faults to inject.
type plan []step

// next returns the fault to inject at this change.
func (p *plan) next(k kind) fault {
	if len(*p) == 0 {
		return none
	}
	first := &(*p)[0]
	if first.kind != anyKind && first.kind != k {
		return none
	}
	first.nth--
	if first.nth > 0 {
		return none
	}
	fault := first.fault
	*p = (*p)[1:]
	return fault
}

// inService cuts the power while the store serves.
func inService(r *round) {
	r.write(func() {
		r.disk.arm(plan{{anyKind, 1 + r.random.IntN(1000), cutPower}})
	})
}

// firstCreation cuts the power while the store creates its file, or in its first
// commits. Every round begins with an empty disk.
func firstCreation(r *round) {
	r.disk.arm(plan{{anyKind, 1 + r.random.IntN(80), cutPower}})
	r.write(func() {})
}

// killedBeforeDirectorySync kills the process that creates the file before it syncs
// the directory. Another process continues on the same disk, and the power is cut
// in its first commits. Every round begins with an empty disk.
func killedBeforeDirectorySync(r *round) {
	r.disk.arm(plan{
		{syncingNames, 1, killProcess},
		{anyKind, 1 + r.random.IntN(80), cutPower},
	})
	r.write(func() {})
	r.write(func() {})
}

// killedBeforeHeaderSync kills the process between the write of a header and its
// sync. Another process continues on the same disk, and the power is cut in its
// first commits.
func killedBeforeHeaderSync(r *round) {
	r.write(func() {
		p := plan{{syncingHeader, 1 + r.random.IntN(20), killProcess}}
		r.disk.arm(r.withRewrite(p, step{anyKind, 1 + r.random.IntN(12), cutPower}))
	})
	r.write(func() {})
}

// withRewrite adds the next step to a plan, at the end of which the store writes both headers
// again. A control drops their sync.
func (r *round) withRewrite(p plan, next step) plan {
	if r.dropsRewrite {
		p = append(p, step{syncingHeader, 1, dropSync})
	}
	return append(p, next)
}

// failedHeaderSync makes the sync of a header fail. The disk marks the header
// clean, so that later syncs report success and do not store it. In half of the
// rounds the next sync of a header fails as well. The power is cut in the commits
// that follow.
func failedHeaderSync(r *round) {
	r.write(func() {
		p := plan{{syncingHeader, 1 + r.random.IntN(20), failSync}}
		if r.random.IntN(2) == 0 {
			p = append(p, step{syncingHeader, 1, failSync})
		}
		r.disk.arm(r.withRewrite(p, step{anyKind, 1 + r.random.IntN(20), cutPower}))
	})
}
