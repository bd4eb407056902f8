package wire

// Bulk is the JSON form of a [relayer.BulkResult].
type Bulk struct {
	RequestID string        `json:"request_id"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Failed    []BulkFailure `json:"failed"`
}

// BulkFailure is an entry of [relayer.BulkResult.Failed].
type BulkFailure struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}
