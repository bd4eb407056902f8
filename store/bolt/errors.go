package bolt

import (
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
)

// ErrLocked reports that another process, or another Store of this process, has
// the file open and did not close it within the lock timeout.
var ErrLocked = errors.New("file is in use")

var errInUse = fmt.Errorf("%w: another process, or another Store of this process, has it open", ErrLocked)

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// unavailable keeps the text of the engine's error and hides its type. The type
// of our own errors stays.
func unavailable(cause any) error {
	if err, ok := cause.(error); ok && errors.Is(err, relayer.ErrCorrupt) {
		return fmt.Errorf("%w: %w", relayer.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %v", relayer.ErrUnavailable, cause)
}

// restoreRemedy is what to do about damage.
const restoreRemedy = "restore the file from a backup"

// corruptData returns the error of a read or a write that meets damaged data.
func corruptData(cause error) error {
	return unavailable(corruptFile(cause))
}

// corruptFile returns the error of Open for a damaged file.
func corruptFile(cause any) error {
	return fmt.Errorf("%w: %v: %s", relayer.ErrCorrupt, cause, restoreRemedy)
}
