package bolt

import (
	"errors"
	"fmt"

	"github.com/go-relayer/relayer"
)

// What [Open] can find wrong with a file. None of these files is changed.
var (
	// ErrLocked says that another process, or another Store of this one, has
	// the file open, and kept it open for longer than the lock timeout.
	ErrLocked = errors.New("file is in use")

	// ErrForeign says that the file was made by something else.
	ErrForeign = errors.New("not a relayer file")

	// ErrNewer says that a newer version of this package made the file.
	ErrNewer = errors.New("relayer file of a newer version")

	// ErrDamaged says that the file is one of ours, and that a part of it is
	// missing or contradicts another. A read that meets such a part returns it
	// together with [relayer.ErrUnavailable].
	ErrDamaged = errors.New("relayer file is damaged")
)

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
	return fmt.Errorf("%w: %w: %v", relayer.ErrUnavailable, ErrDamaged, what)
}
