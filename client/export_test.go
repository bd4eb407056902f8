package client

import "errors"

// WithMaxResponseBytes sets the maximum size of a response, and of an event of Watch, at
// least 1 byte.
func WithMaxResponseBytes(limit int64) Option {
	return Option{func(c *Client) error {
		if limit < 1 {
			return errors.New("client: the response limit must be at least 1 byte")
		}
		c.maxResponseBytes = limit
		return nil
	}}
}

// HasClockStep reports whether the clocks disagree since a time.
var HasClockStep = hasClockStep
