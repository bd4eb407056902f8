package bolt

import "go.etcd.io/bbolt"

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
	if err := s.db.Load().Close(); err != nil {
		return err
	}
	db, err := openExisting(s.path, s.opts)
	if err != nil {
		return err
	}
	if err := s.adopt(db); err != nil {
		return err
	}
	s.suspect = false
	return nil
}

// adopt makes an open file the one that is served.
func (s *Store) adopt(db *bbolt.DB) error {
	alive, err := readLive(db)
	if err != nil {
		return err
	}
	s.views.Store(&views{current: alive, coming: alive})
	s.places.Store(placesFor(alive.total()))
	s.db.Store(db)
	return nil
}
