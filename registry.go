package relayer

import (
	"context"
	"iter"
)

// Reader reads relayers: a [*Manager], a client of package client, or a view of package mirror.
// All methods are safe for concurrent use. See [Manager] for what they do and for their errors.
//
// The relayers that they return are read-only: code that works with every Reader must not
// modify them, nor what they refer to. A mirror shares its relayers among all readers, so a read by
// ID allocates nothing; a Manager and a client return copies.
//
// [Manager.All] yields nil and a [*CorruptError] for a damaged record, and continues behind it;
// every other error is the last. A page with a damaged record is an error. The method All of a
// client and a full read by a mirror use pages, so they fail too.
//
// A Manager lists relayers in creation order, a client as its server does, and a mirror in the
// order of their IDs. IDs that one process generates sort in the order of their generation.
//
// It is an interface for callers: later versions may add methods.
type Reader interface {
	Get(ctx context.Context, id string) (*Relayer, error)
	List(ctx context.Context, query ListQuery) (*Page, error)
	All(ctx context.Context, selector Selector) iter.Seq2[*Relayer, error]
}

// Registry is the interface of a [*Manager] and of the client of package client. A program that
// accepts a Registry works on a store in its own process and on a server; package client lists the
// differences. The RPC URLs that a client returns are masked unless it asks for full ones.
//
// An operation that a server does not offer returns an error that matches
// [errors.ErrUnsupported]. All methods are safe for concurrent use. See [Manager] for what they
// do and for their errors. It is an interface for callers: later versions may add methods.
type Registry interface {
	Reader
	Watch(ctx context.Context, query WatchQuery) iter.Seq2[Change, error]
	Create(ctx context.Context, req CreateRequest, options ...WriteOption) (*Relayer, error)
	Update(ctx context.Context, id string, change func(*Relayer) error, options ...WriteOption) (*Relayer, error)
	Patch(ctx context.Context, id string, patch []byte, options ...WriteOption) (*Relayer, error)
	Pause(ctx context.Context, id string, options ...WriteOption) (*Relayer, error)
	Resume(ctx context.Context, id string, options ...WriteOption) (*Relayer, error)
	PauseAll(ctx context.Context, selector Selector, options ...WriteOption) (BulkResult, error)
	ResumeAll(ctx context.Context, selector Selector, options ...WriteOption) (BulkResult, error)
	Disable(ctx context.Context, id string, reason DisabledReason, options ...WriteOption) (*Relayer, error)
	Enable(ctx context.Context, id string, options ...WriteOption) (*Relayer, error)
	Delete(ctx context.Context, id string, options ...WriteOption) error
	RPCURLs(ctx context.Context, id string) ([]RPCConfig, error)
	History(ctx context.Context, query HistoryQuery) (changes []Change, next uint64, err error)
}

var _ Registry = (*Manager)(nil)
