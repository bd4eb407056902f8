package powerloss

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

// fault is what the disk does in place of a change.
type fault int

const (
	none fault = iota
	cutPower
	killProcess // the process dies before the change; the disk remains on
	failSync    // the sync fails, and what it should have stored is marked clean
)

// step strikes the nth change of a kind.
type step struct {
	kind  kind
	nth   int
	fault fault
}

// plan is the steps that are still to come, in order.
type plan []step

// next returns the fault that strikes this change.
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
