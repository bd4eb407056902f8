// Package ledger keeps what is known of a store from outside: which values each key
// may have after writes that were acknowledged, refused or interrupted.
package ledger

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
)

// Step is the begin or the outcome of a write.
type Step string

// A write begins, and ends with one of the other steps.
const (
	Begin   Step = "begin"
	Done    Step = "done"    // acknowledged
	Refused Step = "refused" // certainly not carried out
	Unknown Step = "unknown" // carried out or not
)

// StepOf returns the outcome of a write that returned err.
func StepOf(err error) Step {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, relayer.ErrOutcomeUnknown):
		return Unknown
	}
	return Refused
}

// Event is a step of a write. The write gives all its keys one value, or none of them.
type Event[V comparable] struct {
	Step   Step
	Writer int // has one write at a time
	Keys   []string
	Value  V // the zero value deletes the keys

	IsImport bool // the history has no imports
}

// Change is the change of one key.
type Change[V comparable] struct {
	Key   string
	Value V
}

// Acknowledged is an acknowledged change, and when it was acknowledged.
type Acknowledged[V comparable] struct {
	Change[V]
	At time.Time
}

// Ledger keeps the events since the last call of Adopt. Its methods may be called
// concurrently.
type Ledger[V comparable] struct {
	mu           sync.Mutex
	values       map[string][]V // that a key may have
	earlier      map[string][]V // adopted or acknowledged values of a key
	inFlight     map[int]Event[V]
	ended        []Event[V]
	acknowledged []Acknowledged[V]
}

// New returns a ledger of an empty store.
func New[V comparable]() *Ledger[V] {
	l := &Ledger[V]{inFlight: make(map[int]Event[V])}
	l.Adopt(nil)
	return l
}

// Note adds an event. The end of a write needs its step and writer only.
func (l *Ledger[V]) Note(e Event[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Step == Begin {
		l.begin(e)
		return
	}
	l.end(e.Writer, e.Step)
}

// Add adds a write that has ended.
func (l *Ledger[V]) Add(step Step, value V, keys ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const writer = -1
	l.begin(Event[V]{Writer: writer, Keys: keys, Value: value})
	l.end(writer, step)
}

func (l *Ledger[V]) begin(e Event[V]) {
	l.inFlight[e.Writer] = e
	for _, key := range e.Keys {
		l.values[key] = append(l.possible(key), e.Value)
	}
}

func (l *Ledger[V]) end(writer int, outcome Step) {
	e := l.inFlight[writer]
	e.Step = outcome
	delete(l.inFlight, writer)
	l.ended = append(l.ended, e)
	for _, key := range e.Keys {
		switch e.Step {
		case Done:
			l.values[key] = []V{e.Value}
			l.earlier[key] = append(l.earlier[key], e.Value)
			l.acknowledged = append(l.acknowledged, Acknowledged[V]{Change[V]{key, e.Value}, time.Now()})
		case Refused:
			at := slices.Index(l.values[key], e.Value)
			l.values[key] = slices.Delete(l.values[key], at, at+1)
		}
	}
}

// possible returns the values that a key may have. The zero value is that of no key.
func (l *Ledger[V]) possible(key string) []V {
	if values, ok := l.values[key]; ok {
		return values
	}
	return make([]V, 1)
}

// Interrupt gives the writes in flight an unknown outcome: their process has died.
func (l *Ledger[V]) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for writer := range l.inFlight {
		l.end(writer, Unknown)
	}
}

// Ended returns the writes with an outcome, in the order in which they ended.
func (l *Ledger[V]) Ended(outcome Step) (ended []Event[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ended {
		if e.Step == outcome {
			ended = append(ended, e)
		}
	}
	return ended
}

// Acknowledged returns the acknowledged changes, in the order of their acknowledgment.
func (l *Ledger[V]) Acknowledged() []Acknowledged[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acknowledged)
}

// Before returns the last value of a key that was acknowledged before a time.
func (l *Ledger[V]) Before(key string, t time.Time) (value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range slices.Backward(l.acknowledged) {
		if a.Key == key && a.At.Before(t) {
			return a.Value
		}
	}
	return value
}

// Difference is how a store differs from a ledger, as keys.
type Difference struct {
	Lost       []string // an acknowledged write is not in the store
	Halves     []string // a write of several keys was carried out in part
	Unexpected []string // a value that no write can have left
}

// Error lists the keys.
func (d Difference) Error() string {
	return fmt.Sprintf("lost %v, half written %v, never written %v", d.Lost, d.Halves, d.Unexpected)
}

// IsEmpty reports whether there is no difference.
func (d Difference) IsEmpty() bool { return len(d.Lost)+len(d.Halves)+len(d.Unexpected) == 0 }

// Compare compares the values that a store has, by key, with those that it may have.
func (l *Ledger[V]) Compare(held map[string]V) (found Difference) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, value := range held {
		switch {
		case slices.Contains(l.possible(key), value):
		case slices.Contains(l.earlier[key], value):
			found.Lost = append(found.Lost, key)
		default:
			found.Unexpected = append(found.Unexpected, key)
		}
	}
	var absent V
	for key := range l.values {
		if _, isHeld := held[key]; !isHeld && !slices.Contains(l.possible(key), absent) {
			found.Lost = append(found.Lost, key)
		}
	}
	for _, e := range l.ended {
		if e.Step == Unknown && e.isHalf(held) {
			found.Halves = append(found.Halves, e.Keys...)
		}
	}
	return found
}

func (e Event[V]) isHalf(held map[string]V) bool {
	carriedOut := 0
	for _, key := range e.Keys {
		if held[key] == e.Value {
			carriedOut++
		}
	}
	return carriedOut != 0 && carriedOut != len(e.Keys)
}

// CompareHistory compares the changes in the history since the last call of Adopt. It returns
// the changes that no write can have made, those that are there twice, and those that are
// missing. One of unknown outcome is there if the store has its value.
func (l *Ledger[V]) CompareHistory(history []Change[V], held map[string]V) (wrong []Change[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	want := make(map[Change[V]]bool)
	for _, e := range l.ended {
		for _, key := range e.Keys {
			if e.Step == Done || e.Step == Unknown && held[key] == e.Value {
				want[Change[V]{key, e.Value}] = !e.IsImport
			}
		}
	}
	for _, c := range history {
		if !want[c] {
			wrong = append(wrong, c)
		}
		want[c] = false
	}
	for c, isMissing := range want {
		if isMissing {
			wrong = append(wrong, c)
		}
	}
	return wrong
}

// Adopt begins again with the values that a store has.
func (l *Ledger[V]) Adopt(held map[string]V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.values, l.earlier = make(map[string][]V), make(map[string][]V)
	for key, value := range held {
		l.values[key], l.earlier[key] = []V{value}, []V{value}
	}
	l.ended, l.acknowledged = nil, nil
}
