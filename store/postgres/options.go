package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"time"
)

// Option configures a [Store]. Pass options to [Open] or [New]. The zero Option is invalid.
type Option struct{ apply func(*options) error }

type options struct {
	schema         string
	withoutSetup   bool
	timeout        time.Duration
	connectTimeout time.Duration // derived from timeout, unless a test sets it
	logger         *slog.Logger

	// The retention that the database is to have, with the age in microseconds. Nil is no change.
	historyAge, historyChanges *int64
}

// schemaName leaves room for a suffix within the 63 bytes of an identifier.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// WithSchema sets the schema that contains the relayers: 1 to 48 characters of a–z,
// 0–9 and _. It must not begin with a digit or with pg_, and must not be
// information_schema. Stores with different schemas are independent.
func WithSchema(name string) Option {
	return Option{func(o *options) error {
		if !schemaName.MatchString(name) || strings.HasPrefix(name, "pg_") || name == "information_schema" {
			return fmt.Errorf("postgres: schema %q must be 1 to 48 of a-z, 0-9 and _, not begin with a digit or pg_, and not be information_schema", name)
		}
		o.schema = name
		return nil
	}}
}

// WithoutSetup keeps [Open] and [New] from creating the schema. If it is missing they return an
// error. Use it to open relayers that must exist: a wrong database name is then an error.
func WithoutSetup() Option {
	return Option{func(o *options) error {
		o.withoutSetup = true
		return nil
	}}
}

// WithTimeout limits how long an operation that has a connection waits for the server. The
// default is 5 seconds. A read waits once. A write waits up to three times: for earlier writes of
// its Store, for the write lock, and for the commit. An instance that stalls while it holds the
// write lock loses it after a tenth of the timeout, at least 250 ms. The context of a call can
// end a read earlier, and a write before it begins.
//
// Before that, an operation waits for a connection to the primary, new or from the pool, for a
// fifth of the timeout, at least a second. It waits if the lack of one is temporary, as in a
// failover, in a restart or while all are in use. It fails at once, with another error, if the
// server refuses the role, the password or the database.
func WithTimeout(timeout time.Duration) Option {
	return Option{func(o *options) error {
		if o.timeout = timeout; timeout < time.Millisecond {
			return errors.New("postgres: the timeout must be at least 1 ms")
		}
		return nil
	}}
}

// WithHistory sets how many changes of each relayer are stored for [Store.History], and how long,
// by the clock of the server. The setting is in the database, for all instances. A negative
// number or age, or no option, keeps what the database has: in a new schema 1,000 changes and 90
// days. At least 10 minutes are kept for watchers. With 0 changes or an age of 0 there is no
// history. An age is otherwise at least a second.
func WithHistory(changes int, age time.Duration) Option {
	return Option{func(o *options) error {
		if age > 0 && age < time.Second {
			return errors.New("postgres: the age of the changes of the history must be 0 or at least 1s")
		}
		if changes >= 0 {
			o.historyChanges = new(int64(changes))
		}
		if age >= 0 {
			o.historyAge = new(age.Microseconds())
		}
		return nil
	}}
}

// WithLogger sets the logger for warnings of [Open], and for the error that the database has lost
// revisions that a list or a write of the Store had seen. Without it nothing is logged.
func WithLogger(logger *slog.Logger) Option {
	return Option{func(o *options) error {
		if logger == nil {
			return errors.New("postgres: the logger is nil")
		}
		o.logger = logger
		return nil
	}}
}

func collect(given []Option) (options, error) {
	collected := options{schema: "relayer", timeout: 5 * time.Second, logger: slog.New(slog.DiscardHandler)}
	for _, option := range given {
		if option.apply == nil {
			return options{}, errors.New("postgres: option is empty")
		}
		if err := option.apply(&collected); err != nil {
			return options{}, err
		}
	}
	collected.connectTimeout = cmp.Or(collected.connectTimeout, max(time.Second, collected.timeout/5))
	return collected, nil
}
