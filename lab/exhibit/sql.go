package exhibit

import "context"

// SQL is a connection to a database, as narrow as [Conn] and for the same reason.
type SQL interface {
	// Number runs a query whose answer is one number.
	Number(ctx context.Context, query string, args ...any) (int64, error)

	// Exec runs a statement and returns how many rows it has changed.
	Exec(ctx context.Context, query string, args ...any) (int64, error)
}
