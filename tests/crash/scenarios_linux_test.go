package crash

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
