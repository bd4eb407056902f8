package main

import (
	"context"
	"errors"

	"github.com/go-relayer/relayer"
)

// work relays for one relayer until ctx is done.
type work func(ctx context.Context, r *relayer.Relayer)

// superviseWorkers runs one worker for each relayer that is neither paused nor
// disabled. It stops the worker if the relayer is changed, paused, disabled or
// deleted. A relayer's next worker starts after its previous one has returned,
// because two workers would use the same nonces. superviseWorkers returns after
// all workers have returned: nil if ctx is done. The registry is a Manager, or the client
// of a server.
func superviseWorkers(ctx context.Context, registry relayer.Registry, do work) error {
	ws := &workers{ctx: ctx, do: do, known: make(map[string]worker)}
	defer ws.stopAll()

	// Watch is called before All, so that no change is lost between the two. A
	// change that All already returned has a known revision and is ignored.
	changes := registry.Watch(ctx)
	if err := ws.resync(ctx, registry); err != nil {
		return err
	}
	for change, err := range changes {
		switch {
		case errors.Is(err, relayer.ErrGap):
			err = ws.resync(ctx, registry)
		case err == nil && change.Kind == relayer.Deleted:
			ws.stop(change.Relayer.ID)
		case err == nil:
			ws.follow(change.Relayer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// workers is the state of superviseWorkers.
type workers struct {
	ctx   context.Context
	do    work
	known map[string]worker
}

// worker is the latest known revision of a relayer and its goroutine. Inactive
// relayers have a worker too, so that an older change does not start them again.
type worker struct {
	revision uint64
	stop     context.CancelFunc
	done     chan struct{}
}

// resync makes the workers match the registry.
func (ws *workers) resync(ctx context.Context, registry relayer.Registry) error {
	exists := make(map[string]bool)
	for r, err := range registry.All(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		exists[r.ID] = true
		ws.follow(r)
	}
	for id := range ws.known {
		if !exists[id] {
			ws.stop(id)
		}
	}
	return nil
}

// follow replaces the worker if r is a newer revision.
func (ws *workers) follow(r *relayer.Relayer) {
	if ws.known[r.ID].revision >= r.Revision {
		return
	}
	ws.stop(r.ID)
	ctx, stop := context.WithCancel(ws.ctx)
	started := worker{r.Revision, stop, make(chan struct{})}
	ws.known[r.ID] = started
	if r.Paused || r.SystemDisabled {
		close(started.done)
		return
	}
	go func() {
		defer close(started.done)
		ws.do(ctx, r)
	}()
}

func (ws *workers) stop(id string) {
	if worker, ok := ws.known[id]; ok {
		worker.stop()
		<-worker.done
		delete(ws.known, id)
	}
}

func (ws *workers) stopAll() {
	for _, worker := range ws.known {
		worker.stop()
	}
	for id := range ws.known {
		ws.stop(id)
	}
}
