package move

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
)

// place is where relayers are kept.
type place struct {
	Store string // bolt, postgres
	Path  string // of the file, or the connection string
}

// store is what the stores offer that a move needs.
type store interface {
	relayer.Store
	relayer.ImportStore
	Check(context.Context) error
	Close() error
}

func (p place) open(ctx context.Context) (store, error) {
	switch p.Store {
	case "bolt":
		return bolt.Open(ctx, p.Path)
	case "postgres":
		return postgres.Open(ctx, p.Path)
	}
	return nil, fmt.Errorf("no store %q", p.Store)
}

// use opens the stores of two places for as long as the call takes: a file has
// one user at a time.
func use(t *testing.T, from, to place, call func(src, dst store)) {
	t.Helper()
	src, err := from.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, src)
	dst, err := to.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(t, dst)
	call(src, dst)
}

func closeStore(t *testing.T, s store) {
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
