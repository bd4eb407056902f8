package wire

import (
	"time"

	"github.com/go-relayer/relayer"
)

// Change is the JSON form of what is known of a change.
type Change struct {
	ID        string         `json:"id,omitempty"` // in the history of all relayers
	Revision  uint64         `json:"revision,omitempty"`
	Time      string         `json:"time,omitempty"`
	Actor     string         `json:"actor,omitempty"`
	Action    relayer.Action `json:"action,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
	Changed   []string       `json:"changed,omitzero"`
	PausedBy  *PausedBy      `json:"paused_by,omitempty"`
}

// PausedBy is the JSON form of [relayer.Relayer.PausedBy].
type PausedBy struct {
	Time      string `json:"time,omitempty"`
	Actor     string `json:"actor,omitempty"`
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"request_id,omitempty"`
}

// Bulk is the JSON form of a [relayer.BulkResult].
type Bulk struct {
	RequestID string        `json:"request_id"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Failed    []BulkFailure `json:"failed"`
}

// BulkFailure is a relayer that could not be changed.
type BulkFailure struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// timeFormat is RFC 3339 in UTC, with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// ChangeOf returns the JSON form of a change. PausedBy is zero if the relayer is not paused.
func ChangeOf(info, pausedBy relayer.ChangeInfo) Change {
	c := Change{
		Revision: info.Revision, Time: formatTime(info.Time), Actor: info.Actor, Action: info.Action,
		Reason: info.Reason, RequestID: info.RequestID, Changed: info.Changed,
	}
	if !pausedBy.Time.IsZero() {
		c.PausedBy = &PausedBy{formatTime(pausedBy.Time), pausedBy.Actor, pausedBy.Reason, pausedBy.RequestID}
	}
	return c
}

// Info returns what the change says of itself.
func (c Change) Info() relayer.ChangeInfo {
	return relayer.ChangeInfo{
		Revision: c.Revision, Time: parseTime(c.Time), Actor: c.Actor, Action: c.Action,
		Reason: c.Reason, RequestID: c.RequestID, Changed: c.Changed,
	}
}

// Info returns who paused the relayer.
func (p *PausedBy) Info() relayer.ChangeInfo {
	if p == nil {
		return relayer.ChangeInfo{}
	}
	return relayer.ChangeInfo{Time: parseTime(p.Time), Actor: p.Actor, Reason: p.Reason, RequestID: p.RequestID}
}

func formatTime(made time.Time) string {
	if made.IsZero() {
		return ""
	}
	return made.UTC().Format(timeFormat)
}

// parseTime returns the zero time for what is no time.
func parseTime(text string) time.Time {
	made, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return made.UTC()
}
