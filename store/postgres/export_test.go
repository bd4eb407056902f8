package postgres

import "github.com/jackc/pgx/v5/pgconn"

// MarkPrimary marks a connection as one that led to a primary when it was asked.
func MarkPrimary(conn *pgconn.PgConn) { conn.CustomData()[primaryKey] = timeline{} }

// Queued returns how many writes wait to be sent.
func (s *Store) Queued() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.waiting)
}

// PruneAll prunes all changes, however new they are.
func (s *Store) PruneAll() error {
	last, err := s.lastChange(s.ended)
	if err != nil {
		return err
	}
	s.pruneOldChanges(last.number)
	return nil
}

// Options applies several options, in order.
func Options(all ...Option) Option {
	return func(o *options) error {
		for _, option := range all {
			if err := option(o); err != nil {
				return err
			}
		}
		return nil
	}
}
