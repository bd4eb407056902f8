package crash

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
