package postgres

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Option changes how [Open] and [New] set up a [Store].
type Option struct {
	apply func(*options) error
}

type options struct {
	schema          string
	onlyOpens       bool
	connectTimeout  time.Duration
	timeout         time.Duration
	changeRetention time.Duration
	migrations      []migration
}

// What a [Store] does unless an [Option] says otherwise.
const (
	DefaultSchema          = "relayer"
	DefaultConnectTimeout  = time.Second
	DefaultTimeout         = 5 * time.Second
	DefaultChangeRetention = 10 * time.Minute
)

// maxSchemaLength leaves room for what is added to the name where the server
// takes 63 bytes.
const maxSchemaLength = 48

// WithSchema names the schema that the relayers are kept in: up to 48 of a–z,
// 0–9 and _, not beginning with a digit or with pg_, and not information_schema.
// Stores with different schemas in one database know nothing of one another.
func WithSchema(name string) Option {
	return Option{func(o *options) error {
		if !isSchemaName(name) {
			return fmt.Errorf("postgres: schema %q must be 1 to %d of a-z, 0-9 and _, and be none of the system's", name, maxSchemaLength)
		}
		o.schema = name
		return nil
	}}
}

// WithoutSetup keeps [Open] and [New] from creating or upgrading the schema. If it
// is missing or older than this package they return [ErrNoSchema]. Use it to open
// relayers that must exist, so that a wrong database name is an error.
func WithoutSetup() Option {
	return Option{func(o *options) error {
		o.onlyOpens = true
		return nil
	}}
}

// WithConnectTimeout says how long an operation waits for a connection, a new
// one or one that others give back to the pool, before it returns
// [relayer.ErrUnavailable]: 1 second unless told otherwise.
func WithConnectTimeout(timeout time.Duration) Option {
	return Option{func(o *options) error {
		o.connectTimeout = timeout
		return positive("connect timeout", timeout)
	}}
}

// WithTimeout says how long an operation that has a connection waits for an
// answer of the server: 5 seconds unless told otherwise. A read waits once. A
// write waits up to three times: for the turns before that of its instance, for
// the turn, and for the commit. A context that ends sooner ends a read, and a
// write whose turn has not begun.
func WithTimeout(timeout time.Duration) Option {
	return Option{func(o *options) error {
		o.timeout = timeout
		return positive("timeout", timeout)
	}}
}

// WithChangeRetention says how long a change is kept for those who watch: 10
// minutes unless told otherwise. A watcher that is cut off for longer is given
// [relayer.ErrMissed]. The shortest retention of all instances counts, and while
// none runs nothing is forgotten. What is kept has the whole of the relayer in it,
// RPC URLs included, also of one that has been deleted since.
func WithChangeRetention(retention time.Duration) Option {
	return Option{func(o *options) error {
		o.changeRetention = retention
		return positive("change retention", retention)
	}}
}

func positive(what string, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("postgres: the %s must be at least a millisecond", what)
	}
	return nil
}

func collect(given []Option) (options, error) {
	collected := options{
		schema:          DefaultSchema,
		connectTimeout:  DefaultConnectTimeout,
		timeout:         DefaultTimeout,
		changeRetention: DefaultChangeRetention,
		migrations:      migrations,
	}
	for _, option := range given {
		if option.apply == nil {
			return options{}, errors.New("postgres: the zero Option is none")
		}
		if err := option.apply(&collected); err != nil {
			return options{}, err
		}
	}
	return collected, nil
}

func isSchemaName(name string) bool {
	if name == "" || len(name) > maxSchemaLength || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return !strings.HasPrefix(name, "pg_") && name != "information_schema"
}
