//go:build unix

package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// testWatch follows the changes of a writer while connections are lost and the server is
// restarted. With every gap repaired by a list, the view of the follower must become the
// content of the store.
func testWatch(s *system) {
	t := s.t
	s.proxy.Rate.Store(100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := s.client()
	v := &view{names: make(map[string]string), revisions: make(map[string]uint64)}
	changes := c.Watch(ctx, relayer.WatchQuery{})
	v.readAll(t, c)
	written := make(chan error, 1)
	go func() { written <- s.write(10**operations, func() bool { return v.changes.Load() > 0 }) }()
	for v.follow(s, changes) {
		v.gaps++
		changes = c.Watch(ctx, relayer.WatchQuery{})
		v.readAll(t, c)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if want := namesOf(s.content()); !maps.Equal(v.names, want) {
		t.Errorf("the view is %v, want %v", v.names, want)
	}
	t.Logf("%d changes, %d gaps", v.changes.Load(), v.gaps)
}

// follow applies the changes, and reports whether a gap ended them before the last relayer.
func (v *view) follow(s *system, changes iter.Seq2[relayer.Change, error]) (isGap bool) {
	if _, ok := v.names[lastID]; ok {
		return false
	}
	for change, err := range changes {
		if errors.Is(err, relayer.ErrGap) {
			return true
		}
		if err != nil {
			s.t.Fatal(err)
		}
		v.apply(s.t, change)
		if v.changes.Load() == int64(*operations) {
			s.restart()
		}
		if _, ok := v.names[lastID]; ok {
			return false
		}
	}
	return false
}

const lastID = "the-last-one"

// write makes changes of few relayers until it has made enough, and a follower has seen one.
// Finally it creates the last one.
func (s *system) write(count int, isSeen func() bool) error {
	ctx := s.t.Context()
	for i := 0; i < count || !isSeen(); i++ {
		id := fmt.Sprint("r", rand.IntN(10))
		name := fmt.Sprint("name-", i)
		_, err := s.manager.Create(ctx, request(id, name, "signer"))
		if errors.Is(err, relayer.ErrExists) {
			if i%3 == 0 {
				err = s.manager.Delete(ctx, id)
			} else {
				_, err = s.manager.Patch(ctx, id, fmt.Appendf(nil, `{"name":%q}`, name))
			}
		}
		if err != nil {
			return err
		}
	}
	_, err := s.manager.Create(ctx, request(lastID, "last", "signer"))
	return err
}

// view is what a follower has learned.
type view struct {
	names     map[string]string
	revisions map[string]uint64 // of the last change
	changes   atomic.Int64
	gaps      int
}

// namesOf returns the names by ID.
func namesOf(relayers []*relayer.Relayer) map[string]string {
	names := make(map[string]string)
	for _, r := range relayers {
		names[r.ID] = r.Name
	}
	return names
}

// readAll reads until a list is complete: requests of the list fail too.
func (v *view) readAll(t *testing.T, c *client.Client) {
	for {
		all, err := collect(c)
		if err == nil {
			v.names = namesOf(all)
			return
		}
		allow(t, "read", err)
	}
}

func (v *view) apply(t *testing.T, change relayer.Change) {
	id, revision := change.Relayer.ID, change.Relayer.Revision
	v.changes.Add(1)
	if change.Kind == relayer.ChangeDeleted {
		delete(v.names, id)
		return
	}
	if revision <= v.revisions[id] {
		t.Errorf("revision %d of %s arrives after %d", revision, id, v.revisions[id])
	}
	v.revisions[id] = revision
	v.names[id] = change.Relayer.Name
}
