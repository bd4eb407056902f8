package bolt

import (
	"errors"
	"log/slog"
	"time"
)

// Option configures [Open]. The zero Option is invalid.
type Option struct{ apply func(*options) error }

type options struct {
	logger *slog.Logger

	historyChanges int // of each relayer; 0: no history
	historyAge     time.Duration
}

const (
	defaultHistoryChanges = 1000
	defaultHistoryAge     = 90 * 24 * time.Hour
)

// WithLogger sets the logger for damage that is found in the file. Without it nothing is logged.
func WithLogger(logger *slog.Logger) Option {
	return Option{func(o *options) error {
		if logger == nil {
			return errors.New("the logger is nil")
		}
		o.logger = logger
		return nil
	}}
}

// WithHistory sets how many changes of each relayer the store retains for [Store.History], and
// how long. The default is 1,000 changes and 90 days. With 0 there is no history. Changes of one
// relayer never displace changes of another. A write deletes changes once 64 or all are too old,
// or 64 of its relayer are too many.
func WithHistory(changes int, age time.Duration) Option {
	return Option{func(o *options) error {
		if changes < 0 || age < 0 {
			return errors.New("the number of changes and the age of the history must be 0 or more")
		}
		if age == 0 {
			changes = 0
		}
		o.historyChanges, o.historyAge = changes, age
		return nil
	}}
}

func collect(opts []Option) (options, error) {
	collected := options{
		logger: slog.New(slog.DiscardHandler), historyChanges: defaultHistoryChanges, historyAge: defaultHistoryAge,
	}
	for _, opt := range opts {
		if opt.apply == nil {
			return options{}, errors.New("option is empty")
		}
		if err := opt.apply(&collected); err != nil {
			return options{}, err
		}
	}
	return collected, nil
}
