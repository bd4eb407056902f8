package client

import (
	"context"
	"errors"
	"iter"

	"github.com/go-relayer/relayer"
)

// Watch ends with [errors.ErrUnsupported].
func (c *Client) Watch(context.Context) iter.Seq2[relayer.Change, error] {
	return func(yield func(relayer.Change, error) bool) { yield(relayer.Change{}, errors.ErrUnsupported) }
}
