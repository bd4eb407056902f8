package move

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/transfer"
)

// location is a store that a process can open.
type location struct {
	Store string // bolt or postgres
	Path  string // of the file, or the connection string
}

// store is a store that can be copied, filled and checked.
type store interface {
	relayer.Store
	transfer.Importer
	transfer.Checker
	Close() error
}

func (l location) open(ctx context.Context) (store, error) {
	switch l.Store {
	case "bolt":
		return bolt.Open(ctx, l.Path)
	case "postgres":
		return postgres.Open(ctx, l.Path)
	}
	return nil, fmt.Errorf("no store %q", l.Store)
}

// use opens two stores for the duration of the call. A file can be open once at a
// time.
func use(t *testing.T, from, to location, call func(src, dst store)) {
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
