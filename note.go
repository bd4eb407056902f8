package relayer

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Note says who made a change, when and why.
type Note struct {
	// Time is when the change was made, in UTC and whole milliseconds, by the clock of the
	// process that made it. It is zero if it is unknown.
	Time time.Time

	// Actor is the [Actor.ID] of the caller. It is empty if it is unknown.
	Actor string

	// Action is what the caller did. It is empty if it is unknown. A pause together with other
	// changes is an update: [Revision.Changed] has all pauses but those of a create.
	Action Action

	// Reason is the text given with [Reason], in which every URL is masked. It is empty if
	// there was none.
	Reason string

	// Changed are the paths of the fields that the change changed, as in [Operation.Changed],
	// in a history and in the result of a dry run. In a history it is empty for a create and a
	// delete, if the revision before is no longer retained, and if the relayer is not selected
	// after the change. In a dry run it is not nil; a create changes all fields that are set.
	Changed []string
}

// storedNote is the form of a note in a [Record]: its fields in this order, separated by
// tabs, without the empty ones at the end. Every record has one and every read decodes it;
// JSON takes twice the memory and more time than the rest of a read. A later version may
// append fields.
type storedNote struct {
	time        string // milliseconds since 1970
	action      string
	actor       string
	reason      string
	changesURLs string // "urls" for an update of the RPC URLs. The masked ones may be equal
}

const (
	noteSeparator = "\t"
	urlsChanged   = "urls"
)

// The limits of a note.
const (
	maxActorLength  = 1024 // bytes
	maxReasonLength = 256  // characters
)

// encodeNote returns the note of a change that is made now. Nothing but the actor can contain a
// separator.
func encodeNote(ctx context.Context, action Action, reason string, changesURLs bool) []byte {
	actor, _ := ActorFrom(ctx)
	id := strings.ReplaceAll(strings.ToValidUTF8(actor.ID, "\uFFFD"), noteSeparator, "\uFFFD")
	urls := ""
	if changesURLs {
		urls = urlsChanged
	}
	note := strconv.AppendInt(nil, time.Now().UnixMilli(), 10)
	for _, field := range []string{string(action), mask.Shortened(id, maxActorLength), reason, urls} {
		note = append(append(note, noteSeparator...), field...)
	}
	return bytes.TrimRight(note, noteSeparator)
}

func parseNote(encoded []byte) (n storedNote) {
	rest := string(encoded)
	for _, field := range []*string{&n.time, &n.action, &n.actor, &n.reason, &n.changesURLs} {
		*field, rest, _ = strings.Cut(rest, noteSeparator)
	}
	return n
}

// decodeNote returns the zero Note if the note is not one of this package.
func decodeNote(encoded []byte) Note {
	stored := parseNote(encoded)
	milliseconds, err := strconv.ParseInt(stored.time, 10, 64)
	if err != nil {
		return Note{}
	}
	return Note{Time: time.UnixMilli(milliseconds).UTC(), Actor: stored.actor, Action: Action(stored.action), Reason: stored.reason}
}

// changesURLs reports whether the note is that of an update of the RPC URLs.
func changesURLs(encoded []byte) bool { return parseNote(encoded).changesURLs == urlsChanged }

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
