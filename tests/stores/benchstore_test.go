//go:build unix

package stores

import (
	"fmt"
	"io"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// recordOf returns the record of a number, with the size and the terms of a usual relayer. Half of
// the records have paused=true, a third network=0, and one of 10,000 the label.
func recordOf(i int) relayer.Record {
	id := idOf(i)
	terms := []string{
		fmt.Sprint("network=", i%3), fmt.Sprint("network_type=", i%3), "notification_id=ops",
		fmt.Sprint("paused=", i/3%2 == 0), fmt.Sprint("signer_id=", i%5000), fmt.Sprint("system_disabled=", i%100 == 0),
	}
	if i%10_000 == 0 {
		terms = append([]string{"label.team=payments"}, terms...)
	}
	return relayer.Record{
		ID: id, Revision: uint64(1 + i), Terms: terms, Text: fmt.Sprintf("%s\x1frelayer %d of team %d", id, i, i%50),
		Note:     []byte(`{"time":1700000000000,"actor":"deployer","action":"create"}`),
		Document: make([]byte, 600), Private: make([]byte, 200),
	}
}

func idOf(i int) string { return fmt.Sprintf("6b3c1f52-0d8e-4a4f-9a57-%012d", i) }

// eachStore runs a benchmark with an empty store in memory, in a file and in PostgreSQL.
func eachStore(b *testing.B, run func(b *testing.B, open func() relayer.Store)) {
	for _, kind := range kinds {
		if kind.name == "map" {
			continue // an example
		}
		b.Run(kind.name, func(b *testing.B) {
			directory := b.TempDir()
			run(b, func() relayer.Store {
				store, err := kind.open(b.Context(), directory)
				must(b, err)
				return store
			})
		})
	}
	b.Run("postgres", func(b *testing.B) {
		server, err := pgserver.New() // with -short too
		if err != nil {
			b.Skip(err)
		}
		b.Cleanup(func() { must(b, server.Close()) })
		run(b, func() relayer.Store { return pgtest.Open(b, server.ConnString()) })
	})
}

func closeStore(b *testing.B, store relayer.Store) {
	if closer, ok := store.(io.Closer); ok {
		must(b, closer.Close())
	}
}

// fill imports the records of the numbers from first to below end.
func fill(b *testing.B, store relayer.Store, first, end int) {
	const page = 500
	for ; first < end; first += page {
		records := make([]relayer.Record, min(page, end-first))
		for i := range records {
			records[i] = recordOf(first + i)
		}
		must(b, store.(transfer.Importer).Import(b.Context(), records))
	}
}
