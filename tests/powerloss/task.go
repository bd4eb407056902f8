package powerloss

// task is what a child does. It writes to a store until it is killed, or examines
// what a power cut left.
type task struct {
	Work work
	Path string

	// For a child that writes.
	Early   bool // acknowledge creates before they are committed
	Seed    uint64
	Process int      // number of the child, so that no two make the same version
	Avoid   []string // relayers whose version is not known

	// For a child that examines.
	TornHeader bool
	After      uint64 // the revision of the last change that is known
}

// work is what a child does. By default it writes.
type work int

const (
	examining work = iota + 1
	probing        // uses a mount as a store does
)
