package postgres

import "github.com/jackc/pgx/v5/pgconn"

// MarkPrimary marks a connection as one that led to a primary when it was asked.
func MarkPrimary(conn *pgconn.PgConn) { conn.CustomData()[primaryKey] = timeline{} }

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
