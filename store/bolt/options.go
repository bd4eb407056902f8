package bolt

import "time"

// Option changes how [Open] opens a file.
type Option func(*options)

type options struct {
	lockTimeout time.Duration
}

// defaultLockTimeout lets a process that is just ending let go of the file.
const defaultLockTimeout = time.Second

// WithLockTimeout says how long [Open] waits for another process to close the
// file before it returns [ErrLocked]: 1 second unless told otherwise. Zero or
// less tries once.
func WithLockTimeout(timeout time.Duration) Option {
	return func(o *options) { o.lockTimeout = max(timeout, time.Nanosecond) }
}

func collect(opts []Option) options {
	collected := options{lockTimeout: defaultLockTimeout}
	for _, apply := range opts {
		apply(&collected)
	}
	return collected
}
