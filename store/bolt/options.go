package bolt

import (
	"errors"
	"time"
)

// Option configures [Open].
type Option func(*options) error

type options struct {
	lockTimeout time.Duration
	cacheBytes  int
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

// defaultCacheBytes has room for about 140,000 relayers of usual size.
const defaultCacheBytes = 128 << 20

// WithDocumentCache sets the maximum size of the document cache in bytes, at least 0. It
// holds documents that were read before, so that [Store.AppendDocument] and
// [Store.AppendDocuments] need not find and verify them in the file again. The cache
// grows with what is read. The default is 128 MiB, and 0 disables the cache.
func WithDocumentCache(bytes int) Option {
	return func(o *options) error {
		if bytes < 0 {
			return errors.New("the size of the document cache must be at least 0")
		}
		o.cacheBytes = bytes
		return nil
	}
}

func collect(opts []Option) (options, error) {
	collected := options{lockTimeout: defaultLockTimeout, cacheBytes: defaultCacheBytes}
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
