package relayer

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// The errors of this package and of every [Store], to be matched with
// [errors.Is]. No error of a database driver or of the validator is part of
// this API.
var (
	// ErrNotFound says that no relayer has the id asked for.
	ErrNotFound = errors.New("relayer not found")

	// ErrExists says that a relayer with the id given exists already.
	ErrExists = errors.New("relayer already exists")

	// ErrClaimed says that another relayer holds the [Record.Claim] given.
	ErrClaimed = errors.New("claim held by another relayer")

	// ErrConflict says that the relayer stands at another revision than the
	// one the caller based its change on.
	ErrConflict = errors.New("relayer was changed meanwhile")

	// ErrInvalid says that the input breaks a rule. The error that wraps it is
	// a [*ValidationError], which names every field and the rule it breaks.
	ErrInvalid = errors.New("invalid relayer")

	// ErrUnknownSigner is what an [AddressResolver] returns for a signer that
	// the host does not have.
	ErrUnknownSigner = errors.New("unknown signer")

	// ErrUnavailable says that the store cannot serve now (it is closed, full,
	// or out of reach) and that the operation has not been carried out.
	ErrUnavailable = errors.New("store unavailable")

	// ErrOutcomeUnknown says that the store failed while a write was being made
	// final, so that only a later read can tell whether it was carried out.
	ErrOutcomeUnknown = errors.New("outcome of the write is unknown")

	// ErrCorrupt reports that stored data is damaged: a part of it is missing,
	// fails its checksum, or contradicts another part.
	ErrCorrupt = errors.New("stored data is corrupt")

	// ErrUnknownFormat reports that a file or a schema was not created by this
	// module.
	ErrUnknownFormat = errors.New("not created by this module")

	// ErrNewerFormat reports that a newer version of this module created a file
	// or a schema, or changed it.
	ErrNewerFormat = errors.New("created by a newer version of this module")
)

// FieldError is one problem of one field.
type FieldError struct {
	// Field is the JSON path of the field as the client wrote it, such as
	// custom_rpc_urls[1].url. It is empty where no field is to blame.
	Field string `json:"field,omitempty"`

	// Message says what the field must be, for the person who sent it.
	Message string `json:"message"`
}

// ValidationError lists every problem found in an input: first those of how it
// is written, then those of what it says. It matches [ErrInvalid].
type ValidationError struct {
	Fields []FieldError
}

// Error names every field and the rule it breaks, on one line.
func (e *ValidationError) Error() string {
	var text strings.Builder
	text.WriteString(ErrInvalid.Error())
	separator := ": "
	for _, problem := range e.Fields {
		text.WriteString(separator)
		if problem.Field != "" {
			text.WriteString(printable(problem.Field))
			text.WriteByte(' ')
		}
		text.WriteString(problem.Message)
		separator = "; "
	}
	return text.String()
}

// printable returns a field as it is, or quoted where it has what would break a
// line or a terminal: names come from whoever sent the request.
func printable(field string) string {
	if strings.ContainsFunc(field, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(field)
	}
	return field
}

// Unwrap lets errors.Is(err, ErrInvalid) hold.
func (e *ValidationError) Unwrap() error { return ErrInvalid }
