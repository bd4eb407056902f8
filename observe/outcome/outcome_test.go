package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/internal/drive"
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
		"nothing":                       {live, nil, outcome.OK},
		"nothing, after the caller":     {canceled, nil, outcome.OK},
		"not found":                     {live, relayer.ErrNotFound, outcome.NotFound},
		"not found, wrapped":            {live, fmt.Errorf("store: %w", relayer.ErrNotFound), outcome.NotFound},
		"not found, after the caller":   {canceled, relayer.ErrNotFound, outcome.NotFound},
		"exists":                        {live, relayer.ErrExists, outcome.Exists},
		"invalid":                       {live, &relayer.ValidationError{}, outcome.Invalid},
		"conflict":                      {live, relayer.ErrConflict, outcome.Conflict},
		"unavailable":                   {live, relayer.ErrUnavailable, outcome.Unavailable},
		"unavailable, as canceled":      {canceled, fmt.Errorf("%w: %w", relayer.ErrUnavailable, context.Canceled), outcome.Canceled},
		"unknown":                       {live, relayer.ErrOutcomeUnknown, outcome.Unknown},
		"unknown, as unavailable":       {live, errors.Join(relayer.ErrUnavailable, relayer.ErrOutcomeUnknown), outcome.Unknown},
		"unknown, as canceled":          {canceled, errors.Join(context.Canceled, relayer.ErrOutcomeUnknown), outcome.Unknown},
		"canceled":                      {canceled, context.Canceled, outcome.Canceled},
		"canceled, wrapped":             {canceled, fmt.Errorf("store: %w", context.Canceled), outcome.Canceled},
		"canceled, but not the caller":  {live, context.Canceled, outcome.Error},
		"canceled, but the caller late": {late, context.Canceled, outcome.Error},
		"too late":                      {late, context.DeadlineExceeded, outcome.Error},
		"an error of the host":          {live, errors.New("the vault is sealed"), outcome.Error},
		"another error, caller gone":    {canceled, errors.New("the vault is sealed"), outcome.Error},
		"a claim, which no caller sees": {live, relayer.ErrClaimed, outcome.Error},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome.Of(test.ctx, test.err); got != test.want {
				t.Errorf("outcome of %v is %q, want %q", test.err, got, test.want)
			}
		})
	}
}

func TestIsFault(t *testing.T) {
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

// Every operation of a real Manager, with every outcome.
func TestOfOperations(t *testing.T) {
	seen := make(map[outcome.Outcome]bool)
	for _, call := range drive.Calls() {
		for _, ending := range drive.Endings() {
			t.Run(call.Name+" "+string(ending.Outcome), func(t *testing.T) {
				var told []relayer.Operation
				var got outcome.Outcome
				ending.Drive(t, call, func(ctx context.Context, operation relayer.Operation) {
					told = append(told, operation)
					got = outcome.Of(ctx, operation.Err)
				})
				if len(told) != 1 || told[0].Kind != call.Kind {
					t.Fatalf("was told of %v, want one %s", told, call.Kind)
				}
				if got != ending.Outcome {
					t.Errorf("outcome is %q, want %q", got, ending.Outcome)
				}
				seen[got] = true
			})
		}
	}
	for _, each := range outcome.All() {
		if !seen[each] {
			t.Errorf("nothing ended with %q", each)
		}
	}
}

// The words for an audit log.
func ExampleOf() {
	ctx := context.Background()
	audit := func(ctx context.Context, operation relayer.Operation) {
		ended := outcome.Of(ctx, operation.Err)
		fmt.Println(operation.Kind, ended, ended.IsFault())
	}
	audit(ctx, relayer.Operation{Kind: relayer.OperationGet, Err: relayer.ErrNotFound})
	audit(ctx, relayer.Operation{Kind: relayer.OperationGet, Err: relayer.ErrUnavailable})
	// Output:
	// get not_found false
	// get unavailable true
}
