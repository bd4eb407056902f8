package powerloss

// task is what a child does. It writes to a store until it is killed, or examines
// what a power cut left.
type task struct {
	Store string
	Path  string

	// For a child that writes.
	Seed    uint64
	Process int      // number of the child, so that no two make the same version
	Avoid   []string // relayers whose version is not known

	// For a child that examines.
	Examine    bool
	TornHeader bool
	After      uint64 // the revision of the last change that is known
}
