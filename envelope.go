package relayer

// Envelope is the body of a successful HTTP response (spec section 2.5). A Go
// client decodes into Envelope[Relayer] or Envelope[[]Relayer].
type Envelope[T any] struct {
	Success    bool        `json:"success"`
	Data       T           `json:"data"`
	Error      string      `json:"error,omitempty"`
	Metadata   *Metadata   `json:"metadata,omitempty"`
	Pagination *Pagination `json:"pagination,omitempty"`
}

// Failure is the body of a failed HTTP response (spec section 7). Success is
// always false and Data always nil.
type Failure struct {
	Success bool   `json:"success"`
	Data    any    `json:"data"`
	Message string `json:"message"`

	// Errors name every problem of a request that is malformed or invalid.
	Errors []FieldError `json:"errors,omitempty"`
}

// Pagination tells where in the list of all relayers a page stands.
type Pagination struct {
	// CurrentPage is the page's number, from 1.
	CurrentPage uint32 `json:"current_page"`

	// PerPage is how many relayers a full page has.
	PerPage uint32 `json:"per_page"`

	// TotalItems is how many relayers there are on all pages.
	TotalItems int `json:"total_items"`
}

// Metadata is what a response may say of how it came about.
type Metadata struct {
	Logs   []LogEntry `json:"logs,omitempty"`
	Traces []any      `json:"traces,omitempty"`
}

// LogEntry is one line of [Metadata.Logs].
type LogEntry struct {
	Level   string `json:"level"`
	Message string `json:"message"`
}
