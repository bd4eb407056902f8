package relayer

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// The sentinel errors of this package. Stores return them too. Match them with [errors.Is].
var (
	// ErrNotFound reports that no relayer has the ID.
	ErrNotFound = errors.New("relayer not found")

	// ErrExists reports that a relayer with the ID exists.
	ErrExists = errors.New("relayer already exists")

	// ErrClaimed is returned by a [Store] if another record holds the [Record.Claim]. A [Manager]
	// returns a problem of signer_id instead.
	ErrClaimed = errors.New("claim is held by another relayer")

	// ErrConflict reports that the current revision of the relayer is not the one on
	// which the caller based its change.
	ErrConflict = errors.New("relayer was changed by another writer")

	// ErrNoRevision reports a condition on revision 0: nothing was changed. Relayers have this
	// revision if they are from a server that returns none.
	ErrNoRevision = errors.New("relayer has no revision")

	// ErrInvalid reports that the input is invalid. The error that wraps it is a
	// [*ValidationError], which lists the problems.
	ErrInvalid = errors.New("invalid relayer")

	// ErrUnknownSigner is returned by the function of [WithAddressResolver] for a signer that
	// the host does not have.
	ErrUnknownSigner = errors.New("unknown signer")

	// ErrUnavailable reports that the store is closed, full or not reachable. The operation had no
	// effect, unless the error matches [ErrOutcomeUnknown] too. A retry does not help if the error
	// matches [ErrCorrupt].
	ErrUnavailable = errors.New("store unavailable")

	// ErrOutcomeUnknown reports that a write may have taken effect, in whole or in part: the
	// store failed during the commit, a response was lost, or a [Manager.PauseAll] ended early. A
	// read is conclusive only after the request has ended and a later write has succeeded.
	ErrOutcomeUnknown = errors.New("outcome of the write is unknown")

	// ErrCorrupt reports that stored data is damaged: a part of it is missing,
	// fails its checksum, or contradicts another part.
	ErrCorrupt = errors.New("stored data is corrupt")

	// ErrUnknownFormat reports that a file or a schema was not created by this library.
	ErrUnknownFormat = errors.New("not created by this library")

	// ErrNewerFormat reports that a newer version of this library created a file
	// or a schema, or changed it.
	ErrNewerFormat = errors.New("created by a newer version of this library")

	// ErrSealed reports that RPC URLs cannot be opened or sealed: their key is missing or not
	// reachable, or the sealed data is altered or in an unknown format. The operation had no
	// effect. If an error of a Manager matches ErrSealed, it matches [ErrUnavailable] too.
	ErrSealed = errors.New("RPC URLs are sealed")

	// ErrGap ends [Manager.Watch] if changes were dropped: the consumer was too slow or
	// resumed too late, or the store does not have the changes. The consumer should read all
	// relayers again, and watch after the position of the first page: see [Manager.Watch].
	ErrGap = errors.New("changes were dropped: read all relayers again")
)

var sentinels = []error{
	ErrNotFound, ErrExists, ErrClaimed, ErrConflict, ErrNoRevision, ErrInvalid, ErrUnknownSigner, ErrUnavailable, ErrOutcomeUnknown,
	ErrCorrupt, ErrUnknownFormat, ErrNewerFormat, ErrSealed, ErrGap, errors.ErrUnsupported,
}

// errSealed is an [ErrSealed] that matches [ErrUnavailable] too.
var errSealed = sealedError{ErrSealed}

type sealedError struct{ error }

func (e sealedError) Unwrap() []error { return []error{e.error, ErrUnavailable} }

// CorruptError is the error of one stored record that is damaged. It matches [ErrCorrupt]
// and what Err matches.
type CorruptError struct {
	// ID is the ID of the record. It is empty if the store cannot read it.
	ID string

	// Sequence is the [Record.Sequence]. A [StoreQuery] with it as After skips the damaged record.
	Sequence uint64

	// Err describes the damage.
	Err error
}

// Error returns the text of Err.
func (e *CorruptError) Error() string { return cmp.Or(e.Err, ErrCorrupt).Error() }

// Unwrap returns [ErrCorrupt] and Err.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// FieldError is one problem of one field.
type FieldError struct {
	// Field is the JSON path of the field as the client wrote it, such as custom_rpc_urls[1].url,
	// or the name of another input, such as per_page. It is empty if the problem is not one of a
	// field.
	Field string `json:"field,omitempty"`

	// Message says what the field must be, for the sender of the request.
	Message string `json:"message"`

	// Code is the kind of the problem, for programs: required, unknown_field, duplicate,
	// wrong_type, out_of_range (of a number or a size), not_allowed (not one of the possible
	// values) or immutable. It is empty for other problems, such as a malformed URL or a text
	// that is too long, and in those that a server reports: the HTTP API has no codes. Later
	// versions may add codes.
	Code string `json:"-"`
}

// ValidationError lists the problems of an input, as a rule one for each invalid field: first the
// problems of syntax, then the problems of values, each in no particular order. Of more than
// 1,000 problems of a body, it has the first 1,000 and an element that says so. The error of a
// [Selector] has only the first problem. Every ValidationError matches [ErrInvalid].
type ValidationError struct {
	Fields []FieldError
}

func invalid(field, message string) error { return invalidAs(field, "", message) }

func invalidAs(field, code, message string) error {
	return &ValidationError{Fields: []FieldError{{Field: field, Code: code, Message: message}}}
}

// problemIf returns the problem of an invalid value, or "".
func problemIf(isInvalid bool, problem string) string {
	if isInvalid {
		return problem
	}
	return ""
}

// Error lists every problem.
func (e *ValidationError) Error() string {
	var text strings.Builder
	text.WriteString(ErrInvalid.Error())
	separator := ": "
	for _, problem := range e.Fields {
		field := problem.Field
		// Unknown names are chosen by the sender of the request. Control characters in them
		// could forge log lines or control a terminal.
		if strings.ContainsFunc(field, func(r rune) bool { return !unicode.IsPrint(r) }) {
			field = strconv.Quote(field)
		}
		if field != "" {
			field += " "
		}
		text.WriteString(separator + field + problem.Message)
		separator = "; "
	}
	return text.String()
}

// Unwrap returns [ErrInvalid].
func (e *ValidationError) Unwrap() error { return ErrInvalid }

// faultError is an error of the host's code, with its URLs masked. It does not match the
// errors of this package, which would give it a meaning for callers: that the relayer is
// unknown, that the request is invalid, or that the write may be repeated.
type faultError struct{ err error }

func (e faultError) Error() string { return mask.Text(e.err.Error()) }

func (e faultError) Is(target error) bool {
	return !slices.Contains(sentinels, target) && errors.Is(e.err, target)
}

func (e faultError) As(target any) bool {
	switch target.(type) {
	case **ValidationError, **CorruptError:
		return false
	}
	return errors.As(e.err, target)
}

// problems collects what is wrong with one input.
type problems struct{ strictjson.Problems }

// err returns a [*ValidationError], or nil if there are no problems.
func (p *problems) err() error {
	var fields []FieldError
	for _, problem := range p.All() {
		problem.Field = mask.Field(problem.Field) // the sender chooses names
		fields = append(fields, FieldError(problem))
	}
	if fields == nil {
		return nil
	}
	return &ValidationError{Fields: fields}
}
