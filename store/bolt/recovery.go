package bolt

import (
	"io/fs"
	"os"
)

// failed says what became of a transaction whose commit failed. The engine
// writes its pages first and makes them count with one last page: so where
// that page does not show the transaction, nothing of it ever counts. Where it
// does, the sync after it failed, and whether it outlives a power cut is not
// known.
func (s *Store) failed(txid int, cause error) error {
	visible, err := s.shows(txid)
	if err != nil {
		s.suspect = true
		if s.recovered() != nil {
			return outcomeUnknown(cause)
		}
		visible, err = s.shows(txid)
	}
	if err != nil {
		return outcomeUnknown(cause)
	}
	if visible {
		s.suspect = true
		return outcomeUnknown(cause)
	}
	return unavailable(cause)
}

// shows says whether readers see the transaction.
func (s *Store) shows(txid int) (bool, error) {
	if s.stuck {
		return false, errStuck
	}
	tx, err := s.db.Load().Begin(false)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback() }()
	return tx.ID() >= txid, nil
}

// recovered opens the file anew after a failure that the engine's memory of it
// may not have survived: what it holds free could then still be read by others.
// It waits for the readers that run.
func (s *Store) recovered() error {
	if s.stuck {
		return errStuck
	}
	if !s.suspect {
		return nil
	}
	known, err := s.pinned()
	if err != nil {
		return err
	}
	if err := s.db.Load().Close(); err != nil {
		return err
	}
	db, err := openExisting(s.path, s.opts, known)
	if err != nil {
		return err
	}
	if err := s.adopt(db); err != nil {
		_ = db.Close()
		return err
	}
	s.suspect = false
	return nil
}

// pinned says which file is the store's own, and whether it still stands at the
// path: another one may have taken its place there. What says so is a handle
// that is kept, because the number of a file that nobody has open is given to
// the next one that is made.
func (s *Store) pinned() (fs.FileInfo, error) {
	if s.pin == nil {
		own, err := s.db.Load().file.Stat()
		if err != nil {
			return nil, err
		}
		if s.pin, err = openKnown(s.path, os.O_RDONLY, 0, own); err != nil {
			return nil, err
		}
	}
	own, err := s.pin.Stat()
	if err != nil {
		return nil, err
	}
	stands, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(own, stands) {
		return nil, errReplaced
	}
	return own, nil
}

// adopt makes an open file the one that is served.
func (s *Store) adopt(db *engine) error {
	alive, err := readLive(db)
	if err != nil {
		return err
	}
	s.views.Store(&views{current: alive, coming: alive})
	s.places.Store(placesFor(alive.total()))
	s.db.Store(db)
	return nil
}
