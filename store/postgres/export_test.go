package postgres

import "github.com/jackc/pgx/v5/pgconn"

// MarkPrimary marks a connection as one that led to a primary when it was asked.
func MarkPrimary(conn *pgconn.PgConn) { conn.CustomData()[primaryKey] = timeline{} }

// Migration is a step that [WithMigrations] adds.
type Migration = migration

// NewMigration returns a step that runs statements. After it, only versions from
// minWriter on may write.
func NewMigration(minWriter int, sql string) Migration { return migration{minWriter, sql} }

// WithMigrations makes a Store that of a later version of this package, whose
// migrations end with these.
func WithMigrations(steps ...Migration) Option {
	return func(o *options) error {
		o.migrations = append(o.migrations[:len(o.migrations):len(o.migrations)], steps...)
		return nil
	}
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
