package relayer

// Pagination describes a page of a selection of relayers.
type Pagination struct {
	// CurrentPage is the number of the page, from 1.
	CurrentPage int `json:"current_page"`

	// PerPage is the number of relayers of a full page.
	PerPage int `json:"per_page"`

	// TotalItems is the number of selected relayers, on all pages.
	TotalItems int `json:"total_items"`
}
