package relayer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-relayer/relayer/internal/mask"
)

// Refuse returns the error with which an admission refuses a write: a [*ValidationError]
// with the reason, for the sender of the request. URLs in the reason are masked.
func Refuse(reason string) error {
	return invalid("", mask.Text(reason))
}

// admissionError returns the error of an admission. Only a refusal keeps its meaning for
// remote callers, which get its fields: their URLs are masked in a copy.
func admissionError(err error) error {
	refusal, ok := errors.AsType[*ValidationError](err)
	if !ok || refusal == nil {
		return fmt.Errorf("relayer: admission: %w", faultError{err})
	}
	masked := &ValidationError{Fields: slices.Clone(refusal.Fields)}
	for i, field := range masked.Fields {
		masked.Fields[i] = FieldError{Field: mask.Text(field.Field), Message: mask.Text(field.Message), Code: field.Code}
	}
	return masked
}
