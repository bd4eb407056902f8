//go:build unix

package stores

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// TestManagers_Race has two Managers race on one store, and on two stores with the
// same data, as the instances of a host do.
func TestManagers_Race(t *testing.T) {
	for name, open := range map[string]func(*testing.T) []relayer.Store{
		"memory": func(*testing.T) []relayer.Store {
			shared := memory.New()
			return []relayer.Store{shared, shared}
		},
		"PostgreSQL": openTwo,
	} {
		t.Run(name, func(t *testing.T) {
			managers := newManagers(t, open(t))
			t.Run("one relayer per signer", func(t *testing.T) { raceForSigner(t, managers) })
			t.Run("one relayer per ID", func(t *testing.T) { raceForID(t, managers) })
			t.Run("no lost update", func(t *testing.T) { raceUpdates(t, managers) })
		})
	}
}

func newManagers(t *testing.T, stores []relayer.Store) []*relayer.Manager {
	t.Helper()
	var managers []*relayer.Manager
	for _, store := range stores {
		manager, err := relayer.New(store, relayer.WithExclusiveSigners())
		must(t, err)
		managers = append(managers, manager)
	}
	return managers
}

const (
	raceRounds = 12
	racers     = 16
)

// race has all racers call concurrently, spread over the Managers, and returns the
// error of each.
func race(managers []*relayer.Manager, call func(m *relayer.Manager, racer int) error) []error {
	errs := make([]error, racers)
	start := make(chan struct{})
	var done sync.WaitGroup
	for racer := range racers {
		done.Go(func() {
			<-start
			errs[racer] = call(managers[racer%len(managers)], racer)
		})
	}
	close(start)
	done.Wait()
	return errs
}

// onlyWinner returns the only racer without an error, and calls check with the
// errors of the others.
func onlyWinner(t *testing.T, errs []error, check func(error)) int {
	t.Helper()
	var winners []int
	for racer, err := range errs {
		if err == nil {
			winners = append(winners, racer)
			continue
		}
		check(err)
	}
	if len(winners) != 1 {
		t.Fatalf("the winners are %v, want exactly one", winners)
	}
	return winners[0]
}

func signedBy(id, signer string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "0", Network: "sepolia", NetworkType: relayer.EVM, SignerID: signer}
}

// raceForSigner deletes the winner of each round through the other Manager, which
// frees the signer for the next round.
func raceForSigner(t *testing.T, managers []*relayer.Manager) {
	for round := range raceRounds {
		id := func(racer int) string { return fmt.Sprintf("signer-%d-%d", round, racer) }
		errs := race(managers, func(m *relayer.Manager, racer int) error {
			_, err := m.Create(t.Context(), signedBy(id(racer), "signer"))
			return err
		})
		winner := onlyWinner(t, errs, func(err error) { wantSignerRefused(t, err) })
		for racer := range racers {
			_, err := managers[(racer+1)%len(managers)].Get(t.Context(), id(racer))
			if racer != winner && !errors.Is(err, relayer.ErrNotFound) || racer == winner && err != nil {
				t.Errorf("round %d, won by %d: get of %d: %v", round, winner, racer, err)
			}
		}
		must(t, managers[(winner+1)%len(managers)].Delete(t.Context(), id(winner)))
	}
}

func wantSignerRefused(t *testing.T, err error) {
	t.Helper()
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok || len(invalid.Fields) != 1 || invalid.Fields[0].Field != "signer_id" {
		t.Errorf("error is %v, want a problem of signer_id", err)
	}
}

func raceForID(t *testing.T, managers []*relayer.Manager) {
	for round := range raceRounds {
		id := fmt.Sprintf("id-%d", round)
		errs := race(managers, func(m *relayer.Manager, racer int) error {
			_, err := m.Create(t.Context(), signedBy(id, fmt.Sprintf("%s-of-%d", id, racer)))
			return err
		})
		winner := onlyWinner(t, errs, func(err error) {
			if !errors.Is(err, relayer.ErrExists) {
				t.Errorf("error is %v, want ErrExists", err)
			}
		})
		r, err := managers[(winner+1)%len(managers)].Get(t.Context(), id)
		if err != nil || r.SignerID != fmt.Sprintf("%s-of-%d", id, winner) {
			t.Errorf("round %d, won by %d: %+v, error %v", round, winner, r, err)
		}
	}
}

// raceUpdates counts in the name of a relayer. A racer tries again if its update
// lost too many races.
func raceUpdates(t *testing.T, managers []*relayer.Manager) {
	if _, err := managers[0].Create(t.Context(), signedBy("counter", "counter")); err != nil {
		t.Fatal(err)
	}
	errs := race(managers, func(m *relayer.Manager, _ int) error {
		for counted := 0; counted < raceRounds; {
			_, err := m.Update(t.Context(), "counter", addOne)
			switch {
			case err == nil:
				counted++
			case !errors.Is(err, relayer.ErrConflict):
				return err
			}
		}
		return nil
	})
	must(t, errors.Join(errs...))
	for _, m := range managers {
		r, err := m.Get(t.Context(), "counter")
		if err != nil || r.Name != strconv.Itoa(racers*raceRounds) {
			t.Fatalf("counter is %+v, want %d; error %v", r, racers*raceRounds, err)
		}
	}
}

func addOne(r *relayer.Relayer) error {
	count, err := strconv.Atoi(r.Name)
	r.Name = strconv.Itoa(count + 1)
	return err
}
