//go:build unix

package client

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

var walked = flag.Int("walked", 1500, "relayers of the walk under writers")

// A walk while 8 writers create and delete returns each relayer that lives through it exactly
// once, in at most 1.05 times the requests of a quiet walk.
func TestAll_ConcurrentWriters(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(manager, tokens, httpapi.WithRateLimit(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(server.URL, client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	lasting := 0 // every eighth relayer is deleted during the walk
	for i := range *walked {
		id := fmt.Sprint("lasting-", i)
		if i%8 == 0 {
			id = fmt.Sprint("fleeting-", i)
		} else {
			lasting++
		}
		if _, err := manager.Create(t.Context(), request(id, id, "signer")); err != nil {
			t.Fatal(err)
		}
	}
	walk := func() (counts map[string]int, used int64) {
		began := requests.Load()
		counts = make(map[string]int)
		for r, err := range c.All(t.Context(), relayer.Selector{}) {
			if err != nil {
				t.Fatal(err)
			}
			counts[r.ID]++
		}
		return counts, requests.Load() - began
	}
	_, quiet := walk()
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var writes atomic.Int64
	for worker := range 8 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := fmt.Sprintf("new-%d-%d", worker, i)
				if _, err := manager.Create(context.Background(), request(id, id, "signer")); err != nil {
					t.Error(err)
				}
				if err := manager.Delete(context.Background(), id); err != nil {
					t.Error(err)
				}
				if old := (i*8 + worker) * 8; old < *walked { // from the oldest on
					if err := manager.Delete(context.Background(), fmt.Sprint("fleeting-", old)); err != nil {
						t.Error(err)
					}
				}
				writes.Add(2)
			}
		})
	}
	counts, busy := walk()
	stop()
	writers.Wait()
	for id, count := range counts {
		if count > 1 {
			t.Errorf("%s is returned %d times", id, count)
		}
		if strings.HasPrefix(id, "lasting") {
			lasting--
		}
	}
	if lasting != 0 {
		t.Errorf("%d relayers are missing", lasting)
	}
	if float64(busy) > 1.05*float64(quiet) {
		t.Errorf("%d requests, and %d in a quiet walk", busy, quiet)
	}
	t.Logf("%d requests, and %d in a quiet walk, during %d writes", busy, quiet, writes.Load())
}
