package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/observertest"
	"github.com/go-relayer/relayer/observe/outcome"
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

func TestOf_EveryManagerOperation(t *testing.T) {
	seen := make(map[outcome.Outcome]bool)
	for _, call := range observertest.Calls() {
		for _, result := range observertest.Results() {
			t.Run(call.Name+" "+string(result.Outcome), func(t *testing.T) {
				var observed []relayer.Operation
				var got outcome.Outcome
				result.Run(t, call, func(ctx context.Context, operation relayer.Operation) {
					observed = append(observed, operation)
					got = outcome.Of(ctx, operation.Err)
				})
				if len(observed) != 1 || observed[0].Kind != call.Kind {
					t.Fatalf("observed %v, want one %s", observed, call.Kind)
				}
				if got != result.Outcome {
					t.Errorf("outcome is %q, want %q", got, result.Outcome)
				}
				seen[got] = true
			})
		}
	}
	for _, each := range outcome.All() {
		if !seen[each] {
			t.Errorf("no operation had outcome %q", each)
		}
	}
}

// An audit log records the outcome instead of the error text.
func ExampleOf() {
	ctx := context.Background()
	audit := func(ctx context.Context, operation relayer.Operation) {
		result := outcome.Of(ctx, operation.Err)
		fmt.Println(operation.Kind, result, result.IsFault())
	}
	audit(ctx, relayer.Operation{Kind: relayer.OperationGet, Err: relayer.ErrNotFound})
	audit(ctx, relayer.Operation{Kind: relayer.OperationGet, Err: relayer.ErrUnavailable})
	// Output:
	// get not_found false
	// get unavailable true
}

func TestKinds(t *testing.T) {
	called := make(map[relayer.OperationKind]bool)
	for _, call := range observertest.Calls() {
		called[call.Kind] = true
	}
	kinds := outcome.Kinds()
	if got := slices.Sorted(slices.Values(kinds)); !slices.Equal(got, slices.Sorted(maps.Keys(called))) {
		t.Errorf("Kinds returns %v, but the Manager reports %v", kinds, called)
	}
}
