package bolt

import (
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
)

// ErrLocked reports that another process, or another Store of this process, has
// the file open and did not close it within the lock timeout.
var ErrLocked = errors.New("file is in use")

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// unavailable hides the engine's error behind ours and keeps its text.
func unavailable(cause any) error {
	return fmt.Errorf("%w: %v", relayer.ErrUnavailable, cause)
}

func outcomeUnknown(cause any) error {
	return fmt.Errorf("%w: %v", relayer.ErrOutcomeUnknown, cause)
}

// damagedRead is what a read returns when it meets a damaged part.
func damagedRead(what any) error {
	return fmt.Errorf("%w: %w: %v", relayer.ErrUnavailable, relayer.ErrCorrupt, what)
}
