package bolt

import (
	"errors"
	"time"
)

// Option configures [Open].
type Option func(*options) error

type options struct {
	lockTimeout time.Duration
	mapping     int // least address space to reserve; 0 is the default
}

// defaultLockTimeout is long enough for a process that is ending to close the file.
const defaultLockTimeout = time.Second

// WithLockTimeout sets how long [Open] waits for another process to close the
// file before it returns [ErrLocked]. The default is 1 second. Zero or less tries
// once.
func WithLockTimeout(timeout time.Duration) Option {
	return func(o *options) error {
		o.lockTimeout = max(timeout, time.Nanosecond)
		return nil
	}
}

func collect(opts []Option) (options, error) {
	collected := options{lockTimeout: defaultLockTimeout}
	for _, opt := range opts {
		if opt == nil {
			return options{}, errors.New("an option is nil")
		}
		if err := opt(&collected); err != nil {
			return options{}, err
		}
	}
	return collected, nil
}
