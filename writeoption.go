package relayer

import (
	"cmp"
	"errors"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
)

// WriteOption is an option of a write: see [IfRevision], [DryRun] and [Reason]. The zero
// WriteOption is invalid.
type WriteOption struct {
	apply func(*WriteSettings) error
}

// IfRevision permits a change only if the current revision of the relayer is one of these
// (optimistic concurrency); otherwise it returns [ErrConflict]. Several such options leave
// the revisions that all have. Without this option, a change that loses a race against
// another writer is retried on the new revision.
//
// IfRevision() without arguments never permits the change. Revision 0, which no stored
// relayer has, is [ErrNoRevision]. A create, which has no current revision, ignores all
// other revisions.
func IfRevision(revisions ...uint64) WriteOption {
	revisions = append([]uint64{}, revisions...) // never nil
	return WriteOption{func(s *WriteSettings) error {
		if slices.Contains(revisions, 0) {
			return ErrNoRevision
		}
		if s.Revisions == nil {
			s.Revisions = revisions
			return nil
		}
		s.Revisions = slices.DeleteFunc(slices.Clone(s.Revisions), func(revision uint64) bool { return !slices.Contains(revisions, revision) })
		return nil
	}}
}

// DryRun checks everything that the write checks, hooks and conditions included, and stores
// nothing. The write returns what it would return, with the current revision, or revision 0 for
// a create. Of [Relayer.LastChange] only Changed is set: what the write would change, with
// custom_rpc_urls if the secret of a URL differs. A dry run does not detect that a store cannot
// delete a damaged relayer.
func DryRun() WriteOption {
	return WriteOption{func(s *WriteSettings) error {
		s.DryRun = true
		return nil
	}}
}

// Reason stores the text with the change, with every URL masked like an [RPCURL]. The text has at
// most 256 characters on one line; otherwise the write returns a [*ValidationError] on
// change_reason. What is longer with masked URLs is cut off. Of several reasons the last counts.
func Reason(text string) WriteOption {
	return WriteOption{func(s *WriteSettings) error {
		if problem := reasonProblem(text); problem != "" {
			return invalid("change_reason", problem)
		}
		masked := []rune(mask.Text(text)) // it is logged and kept in the history
		s.Reason = string(masked[:min(len(masked), maxReasonLength)])
		return nil
	}}
}

// WriteSettings is the result of write options, for implementations of [Registry].
type WriteSettings struct {
	// Revisions are the current revisions at which the write is permitted. Nil permits
	// it at any revision; an empty list never permits it.
	Revisions []uint64

	// DryRun checks the write only.
	DryRun bool

	// Reason is the text of the last valid [Reason].
	Reason string
}

// NewWriteSettings combines options. It returns [ErrNoRevision] if a condition has
// revision 0, and a [*ValidationError] for an invalid reason, with the settings of the other
// options.
func NewWriteSettings(options ...WriteOption) (s WriteSettings, err error) {
	for _, option := range options {
		if option.apply == nil {
			err = cmp.Or(err, errors.New("relayer: write option is empty"))
			continue
		}
		err = cmp.Or(err, option.apply(&s))
	}
	return s, err
}

func (s WriteSettings) check(revision uint64) error {
	if s.Revisions != nil && !slices.Contains(s.Revisions, revision) {
		return ErrConflict
	}
	return nil
}
