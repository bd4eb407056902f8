package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
	"github.com/go-relayer/relayer/store/memory"
)

func TestOf(t *testing.T) {
	live := context.Background()
	canceled, cancel := context.WithCancel(live)
	cancel()
	late, cancel := context.WithDeadline(live, time.Now().Add(-time.Second))
	defer cancel()

	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want outcome.Outcome
	}{
		"nil":                          {live, nil, outcome.OK},
		"nil, context canceled":        {canceled, nil, outcome.OK},
		"not found":                    {live, relayer.ErrNotFound, outcome.NotFound},
		"not found, wrapped":           {live, fmt.Errorf("store: %w", relayer.ErrNotFound), outcome.NotFound},
		"not found, context canceled":  {canceled, relayer.ErrNotFound, outcome.NotFound},
		"exists":                       {live, relayer.ErrExists, outcome.Exists},
		"invalid":                      {live, &relayer.ValidationError{}, outcome.Invalid},
		"conflict":                     {live, relayer.ErrConflict, outcome.Conflict},
		"no revision":                  {live, relayer.ErrNoRevision, outcome.Conflict},
		"unavailable":                  {live, relayer.ErrUnavailable, outcome.Unavailable},
		"unavailable and canceled":     {canceled, fmt.Errorf("%w: %w", relayer.ErrUnavailable, context.Canceled), outcome.Canceled},
		"unknown":                      {live, relayer.ErrOutcomeUnknown, outcome.Unknown},
		"unknown and unavailable":      {live, errors.Join(relayer.ErrUnavailable, relayer.ErrOutcomeUnknown), outcome.Unknown},
		"unknown and canceled":         {canceled, errors.Join(context.Canceled, relayer.ErrOutcomeUnknown), outcome.Unknown},
		"canceled":                     {canceled, context.Canceled, outcome.Canceled},
		"canceled, wrapped":            {canceled, fmt.Errorf("store: %w", context.Canceled), outcome.Canceled},
		"canceled, context live":       {live, context.Canceled, outcome.Error},
		"canceled, deadline exceeded":  {late, context.Canceled, outcome.Error},
		"deadline exceeded":            {late, context.DeadlineExceeded, outcome.Error},
		"host error":                   {live, errors.New("the vault is sealed"), outcome.Error},
		"host error, context canceled": {canceled, errors.New("the vault is sealed"), outcome.Error},
		"unsupported":                  {live, fmt.Errorf("store: %w", errors.ErrUnsupported), outcome.NotFound},
		"sealed, without keys":         {live, errors.Join(relayer.ErrUnavailable, errors.ErrUnsupported), outcome.Unavailable},
		"claimed":                      {live, relayer.ErrClaimed, outcome.Error},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome.Of(test.ctx, test.err); got != test.want {
				t.Errorf("outcome of %v is %q, want %q", test.err, got, test.want)
			}
		})
	}
}

func TestOutcome_IsFault(t *testing.T) {
	var faults []outcome.Outcome
	for _, each := range outcome.All() {
		if each.IsFault() {
			faults = append(faults, each)
		}
	}
	if want := []outcome.Outcome{outcome.Unavailable, outcome.Unknown, outcome.Error}; !slices.Equal(faults, want) {
		t.Errorf("faults are %q, want %q", faults, want)
	}
}

// An audit log records the outcome instead of the error text.
func ExampleOf() {
	audit := func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		return ctx, func(err error) {
			result := outcome.Of(ctx, err)
			fmt.Println(operation.Action, operation.ID, result, result.IsFault())
		}
	}
	manager, err := relayer.New(memory.New(), relayer.WithObserver(audit))
	if err != nil {
		log.Fatal(err)
	}
	manager.Get(context.Background(), "sepolia-1")
	// Output: get sepolia-1 not_found false
}

func TestActions_AllThatManagerReports(t *testing.T) {
	reported := make(map[relayer.Action]bool)
	m, err := relayer.New(memory.New(), relayer.WithObserver(func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		reported[operation.Action] = true
		return ctx, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	m.Create(ctx, relayer.CreateRequest{})
	m.Get(ctx, "a")
	m.List(ctx, relayer.ListQuery{})
	m.Update(ctx, "a", func(*relayer.Relayer) error { return nil })
	m.Pause(ctx, "a")
	m.Resume(ctx, "a")
	m.Disable(ctx, "a", relayer.DisabledReason{})
	m.Enable(ctx, "a")
	m.Delete(ctx, "a")
	m.RPCURLs(ctx, "a")
	watching, cancel := context.WithCancel(ctx)
	cancel()
	for range m.Watch(watching, relayer.WatchQuery{}) {
	}
	if got, want := slices.Sorted(slices.Values(outcome.Actions())), slices.Sorted(maps.Keys(reported)); !slices.Equal(got, want) {
		t.Errorf("Actions returns %v, and the Manager reports %v", got, want)
	}
}
