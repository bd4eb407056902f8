package httpapi

import (
	"errors"
	"sync/atomic"
)

// DefaultMaxInFlight is how many requests are worked on at once, unless
// [WithMaxInFlight] says otherwise.
const DefaultMaxInFlight = 1024

// WithMaxInFlight sets how many requests are worked on at once, at least 1. One
// more is answered 503 with Retry-After, before anything is read or looked up
// for it: a server that is late for everybody serves nobody.
func WithMaxInFlight(most int) Option {
	return Option{func(a *api) error {
		if most < 1 {
			return errors.New("httpapi: at least 1 request must be worked on at once")
		}
		a.inFlight.most = int64(most)
		return nil
	}}
}

// inFlight counts the requests being worked on.
type inFlight struct {
	most int64
	now  atomic.Int64
}

// enter reports whether there is room for one more, who must leave.
func (f *inFlight) enter() bool {
	if f.now.Add(1) <= f.most {
		return true
	}
	f.now.Add(-1)
	return false
}

func (f *inFlight) leave() { f.now.Add(-1) }
