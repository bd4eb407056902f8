package relayer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// ChangeInfo says who made a change of a relayer, when and why, and what it changed. What is
// unknown is empty.
type ChangeInfo struct {
	// Revision is the revision of the relayer that the change made. It is 0 in
	// [Relayer.PausedBy] and for a dry run.
	Revision uint64

	// Time is when the change was made, in UTC and whole milliseconds, by the clock of the
	// process that made it.
	Time time.Time

	// Actor is the [Actor.ID] of the caller.
	Actor string

	// Action is what the caller did. A pause together with other changes is an update.
	Action Action

	// Reason is the text given with [Reason], in which every URL is masked.
	Reason string

	// RequestID is the [Actor.RequestID] of the caller: by it the sender of a write whose
	// response was lost finds its own change.
	RequestID string

	// Changed are the paths of the fields that the change changed, such as
	// policies.gas_price_cap, labels.team or disabled_reason.type, sorted: the members of an
	// object are fields of their own, and a list is one field. If the paths have more than 600
	// bytes, they are those of the members at the top. It is empty for a create and a delete,
	// and in a history if a relayer was not selected before and after the change. For a dry run
	// it has what would change and is not nil; a create and a delete change all fields that are
	// set.
	Changed []string
}

// A note is the form of a ChangeInfo in a [Record]: fields in this order, separated by tabs,
// without the empty ones at the end. Every record has one and every read decodes it; JSON takes
// twice the memory and more time than the rest of a read. A later version may append fields.
const (
	noteTime = iota // milliseconds since 1970
	noteAction
	noteActor
	noteReason
	noteRequestID
	noteChanged

	// These are of the change that paused the relayer, while it is paused. The time is
	// pausedByItself in the note of that change.
	notePausedTime
	notePausedActor
	notePausedReason
	notePausedRequestID
	noteFields
)

const (
	noteSeparator  = "\t"
	pathSeparator  = "\x1f"
	pausedByItself = "="
	timeOfDryRun   = "-"
)

// The limits of a note. Together they are below the limit of [Record.Note].
const (
	maxActorLength     = 256 // bytes
	maxRequestIDLength = 128 // bytes
	maxReasonLength    = 256 // characters
	maxPathsLength     = 600 // bytes
)

type note [noteFields]string

func parseNote(encoded []byte) (n note) {
	rest := string(encoded)
	for i := range n {
		n[i], rest, _ = strings.Cut(rest, noteSeparator)
	}
	return n
}

func (n note) encoded() []byte {
	return []byte(strings.TrimRight(strings.Join(n[:], noteSeparator), noteSeparator))
}

// newNote returns the note of a change that is made now.
func newNote(ctx context.Context, action Action, reason string, changed []string) (n note) {
	actor, _ := ActorFrom(ctx)
	n[noteTime] = strconv.FormatInt(time.Now().UnixMilli(), 10)
	n[noteAction], n[noteReason] = string(action), reason
	n[noteActor] = mask.Shortened(withoutSeparators(actor.ID), maxActorLength)
	n[noteRequestID] = mask.Shortened(withoutSeparators(actor.RequestID), maxRequestIDLength)
	n[noteChanged] = joinedPaths(changed)
	return n
}

func withoutSeparators(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), noteSeparator, "\uFFFD")
}

func joinedPaths(paths []string) string {
	joined := withoutSeparators(strings.Join(paths, pathSeparator))
	if len(joined) <= maxPathsLength {
		return joined
	}
	var members []string
	for _, path := range paths {
		members = append(members, path[:max(0, strings.IndexAny(path+".", ".["))])
	}
	return mask.Shortened(strings.Join(slices.Compact(members), pathSeparator), maxPathsLength)
}

// setPaused sets who paused the relayer. Before is the note of a record that is paused, or nil.
func (n *note) setPaused(before []byte) {
	n[notePausedTime] = pausedByItself
	if before == nil {
		return
	}
	old := parseNote(before)
	copy(n[notePausedTime:], old[notePausedTime:])
	if old[notePausedTime] == pausedByItself {
		n[notePausedTime], n[notePausedActor], n[notePausedReason], n[notePausedRequestID] = old[noteTime], old[noteActor], old[noteReason], old[noteRequestID]
	}
}

// changeInfoOf returns what is known of the change that made a record.
func changeInfoOf(rec Record) ChangeInfo {
	n := parseNote(rec.Note)
	var changed []string
	if n[noteChanged] != "" {
		changed = strings.Split(n[noteChanged], pathSeparator)
	}
	if n[noteTime] == timeOfDryRun {
		return ChangeInfo{Changed: append([]string{}, changed...)}
	}
	made := n.time(noteTime)
	if made.IsZero() {
		return ChangeInfo{Revision: rec.Revision} // it is not a note of this package
	}
	return ChangeInfo{
		Revision: rec.Revision, Time: made, Actor: n[noteActor], Action: Action(n[noteAction]), Reason: n[noteReason],
		RequestID: n[noteRequestID], Changed: changed,
	}
}

// pausedByOf returns what is known of the change that paused the relayer of a record.
func pausedByOf(rec Record) ChangeInfo {
	n := parseNote(rec.Note)
	if n[notePausedTime] == pausedByItself {
		return ChangeInfo{Time: n.time(noteTime), Actor: n[noteActor], Reason: n[noteReason], RequestID: n[noteRequestID]}
	}
	return ChangeInfo{Time: n.time(notePausedTime), Actor: n[notePausedActor], Reason: n[notePausedReason], RequestID: n[notePausedRequestID]}
}

// time returns the zero time for what is no time.
func (n note) time(field int) time.Time {
	milliseconds, err := strconv.ParseInt(n[field], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(milliseconds).UTC()
}

// withoutPaths returns the note without what the change changed.
func withoutPaths(encoded []byte) []byte {
	n := parseNote(encoded)
	n[noteChanged] = ""
	return n.encoded()
}

// onlyPaths returns the note of a dry run.
func onlyPaths(changed []string) []byte {
	var n note
	n[noteTime], n[noteChanged] = timeOfDryRun, joinedPaths(changed)
	return n.encoded()
}

// isPaused reports whether the relayer of a record is paused.
func isPaused(rec Record) bool {
	_, isPaused := slices.BinarySearch(rec.Terms, "paused=true")
	return isPaused
}

// reasonProblem returns why the text cannot be the reason of a change, or "".
func reasonProblem(reason string) string {
	switch {
	case utf8.RuneCountInString(reason) > maxReasonLength:
		return fmt.Sprintf("must be at most %d characters", maxReasonLength)
	case strings.ContainsFunc(reason, unicode.IsControl):
		return "must be one line without control characters"
	default:
		return strictjson.TextProblem(reason)
	}
}
