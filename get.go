package relayer

import (
	"context"
)

// Get returns the relayer, or [ErrNotFound]. If its RPC URLs are sealed and cannot be
// opened, they are masked (see [RPCURL.IsMasked]); [Manager.RPCURLs] returns the error.
func (m *Manager) Get(ctx context.Context, id string) (*Relayer, error) {
	return get(ctx, m, ActionGet, id, m.openedRelayerOf)
}

// form makes of a record what a caller gets: a relayer, or a document.
type form[T any] func(context.Context, Record) (T, error)

func get[T any](ctx context.Context, m *Manager, action Action, id string, form form[T]) (T, error) {
	return observe(ctx, m.observers, action, id, func(ctx context.Context) (T, error) {
		rec, err := m.get(ctx, id)
		if err != nil {
			return *new(T), err
		}
		return form(ctx, rec)
	})
}

// RPCURLs returns the RPC endpoints of the relayer with their full URLs. It returns
// [ErrNotFound], or an error that matches [ErrSealed] if they cannot be opened, and
// [errors.ErrUnsupported] too if the store has no keys to open them. It returns a
// [*CorruptError] if they are damaged.
func (m *Manager) RPCURLs(ctx context.Context, id string) ([]RPCConfig, error) {
	return get(ctx, m, ActionReveal, id, func(ctx context.Context, rec Record) ([]RPCConfig, error) {
		opened, err := m.opened(ctx, rec)
		if err != nil {
			return nil, err
		}
		r, err := unmaskedRelayerOf(opened)
		if err != nil {
			return nil, err
		}
		return r.CustomRPCURLs, nil
	})
}

// get returns the record of a relayer of the view.
func (m *Manager) get(ctx context.Context, id string) (Record, error) {
	if !IsID(id) {
		return Record{}, ErrNotFound
	}
	return m.store.Get(ctx, id)
}
