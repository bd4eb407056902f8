package relayer

// Envelope is the body of a successful HTTP response. A Go client decodes a response
// into Envelope[Relayer] or Envelope[[]Relayer]. The member error of the
// interface is never sent. Metadata has warnings for people, and is ignored here.
type Envelope[T any] struct {
	Success    bool        `json:"success"`
	Data       T           `json:"data"`
	Pagination *Pagination `json:"pagination,omitempty"`
}

// Failure is the body of a failed HTTP response. Success is always false and Data
// always nil.
type Failure struct {
	Success bool   `json:"success"`
	Data    any    `json:"data"`
	Message string `json:"message"`

	// Errors has every problem of a malformed or invalid request.
	Errors []FieldError `json:"errors,omitempty"`
}

// Pagination describes a page of a selection of relayers.
type Pagination struct {
	// CurrentPage is the number of the page, from 1.
	CurrentPage int `json:"current_page"`

	// PerPage is the number of relayers of a full page.
	PerPage int `json:"per_page"`

	// TotalItems is the number of selected relayers, on all pages.
	TotalItems int `json:"total_items"`
}
