// Package postgres keeps relayers in PostgreSQL, for services of which several
// instances share one registry.
package postgres

import (
	_ "github.com/jackc/pgx/v5/pgxpool"

	_ "github.com/go-relayer/relayer"
)
