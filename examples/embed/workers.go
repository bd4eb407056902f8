package main

import (
	"context"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/mirror"
)

// work relays for one relayer until ctx is done.
type work func(ctx context.Context, r *relayer.Relayer)

// superviseWorkers runs one worker for each relayer that is neither paused nor disabled,
// until ctx is done. If a relayer is changed, its worker is replaced: the next one starts
// after the previous one has returned, because two would use the same nonces. The registry
// is a Manager, or the client of a server.
func superviseWorkers(ctx context.Context, registry mirror.Source, do work) error {
	view, err := mirror.Open(ctx, registry, relayer.Selector{})
	if err != nil {
		return err
	}
	stops := make(map[string]func())
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for change := range view.Changes(ctx) {
		if change.Before != nil {
			stops[change.Before.ID]()
			delete(stops, change.Before.ID)
		}
		if change.After != nil {
			stops[change.After.ID] = start(ctx, change.After, do)
		}
	}
	return nil
}

// start runs the worker of a relayer, unless it must not relay, and returns a function that
// ends the worker and waits for it.
func start(ctx context.Context, r *relayer.Relayer, do work) (stop func()) {
	if r.Paused || r.SystemDisabled {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx, r)
	}()
	return func() {
		cancel()
		<-done
	}
}
