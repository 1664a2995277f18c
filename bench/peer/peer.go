// Package peer holds the ways to lock that are compared, one adapter per file. To add one, write its file and name it in
// [All]; scenarios then pick it by its name.
//
// All adapters of a run use the same lock: the only one in the folder, or on the server, that they are opened with.
package peer

import "context"

// Peer is one process's access to the lock.
type Peer interface {
	// Worker returns the lock as one goroutine uses it.
	Worker() (Worker, error)
	// Close is called when no worker locks any more.
	Close() error
}

// Worker locks for one goroutine. Unlock ends what the last Lock took.
type Worker interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// Spec describes a peer and opens it.
type Spec struct {
	Name string
	Does string // what one acquisition and its release do, for readers of the table
	// Alone says that it excludes nobody outside of its process.
	Alone bool
	// Open gets a folder that all processes of a run share. It is empty at first and removed afterwards.
	Open func(ctx context.Context, dir string) (Peer, error)
}

// All returns every peer, in the order of tables.
func All() []Spec {
	return []Spec{interlockFile(), filelockDriver(), interlockMem(), flockOpened(), flockKept(), syncMutex()}
}
