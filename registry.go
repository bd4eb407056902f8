package relayer

import (
	"context"
	"iter"
)

// Registry is the interface of a [*Manager] and of the client of package client. A
// program that accepts a Registry works on a store in its own process and on a
// server alike. RPC URLs that a server returns are masked.
//
// All methods are safe for concurrent use. [Manager] documents them and their errors.
type Registry interface {
	Create(ctx context.Context, req CreateRequest) (*Relayer, error)
	Get(ctx context.Context, id string) (*Relayer, error)
	List(ctx context.Context, page, perPage uint32) (*Page, error)
	All(ctx context.Context) iter.Seq2[*Relayer, error]
	Patch(ctx context.Context, id string, patch Patch, conditions ...Condition) (*Relayer, error)
	Pause(ctx context.Context, id string, conditions ...Condition) (*Relayer, error)
	Resume(ctx context.Context, id string, conditions ...Condition) (*Relayer, error)
	Delete(ctx context.Context, id string, conditions ...Condition) error
	Watch(ctx context.Context) iter.Seq2[Change, error]
	WatchAfter(ctx context.Context, position string) iter.Seq2[Change, error]
}

var _ Registry = (*Manager)(nil)
