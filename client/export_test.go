package client

// WithMaxResponseBytes sets the maximum size of a response, and of an event of Watch, at
// least 1 byte.
func WithMaxResponseBytes(limit int64) Option {
	return option(limit > 0, "the response limit must be at least 1 byte", func(c *Client) { c.maxResponseBytes = limit })
}

// HasClockStep reports whether the clocks disagree since a time.
var HasClockStep = hasClockStep
