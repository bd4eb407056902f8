package main

import (
	"context"
	"errors"

	"github.com/go-relayer/relayer"
)

// work relays for one relayer until ctx is done.
type work func(ctx context.Context, r *relayer.Relayer)

// superviseWorkers keeps one worker for each relayer that may relay, and ends it
// when the relayer is changed, paused, disabled or deleted. The next worker of a
// relayer begins after the last one has ended: two would fight over its nonces.
// It returns after all have ended: nil where ctx is done.
func superviseWorkers(ctx context.Context, manager *relayer.Manager, do work) error {
	ws := &workers{ctx: ctx, do: do, known: make(map[string]worker)}
	defer ws.stopAll()

	// Watch comes before All, so that nothing falls in between. A change that
	// All has shown already is recognised by its revision.
	changes := manager.Watch(ctx)
	if err := ws.resync(ctx, manager); err != nil {
		return err
	}
	for change, err := range changes {
		switch {
		case errors.Is(err, relayer.ErrMissed):
			err = ws.resync(ctx, manager)
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

// workers are what superviseWorkers has started.
type workers struct {
	ctx   context.Context
	do    work
	known map[string]worker
}

// worker is what is known of a relayer, whether or not it may relay now: a
// change of an older revision must not bring it back to work.
type worker struct {
	revision uint64
	stop     context.CancelFunc
	ended    chan struct{}
}

// resync compares what runs with what the registry holds.
func (ws *workers) resync(ctx context.Context, manager *relayer.Manager) error {
	exists := make(map[string]bool)
	for r, err := range manager.All(ctx) {
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

// follow brings the worker of a relayer in line with how the relayer stands.
func (ws *workers) follow(r *relayer.Relayer) {
	if ws.known[r.ID].revision >= r.Revision {
		return
	}
	ws.stop(r.ID)
	ctx, stop := context.WithCancel(ws.ctx)
	began := worker{r.Revision, stop, make(chan struct{})}
	ws.known[r.ID] = began
	if r.Paused || r.SystemDisabled {
		close(began.ended)
		return
	}
	go func() {
		defer close(began.ended)
		ws.do(ctx, r)
	}()
}

func (ws *workers) stop(id string) {
	if worker, ok := ws.known[id]; ok {
		worker.stop()
		<-worker.ended
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
