package conn

import (
	"errors"
	"strings"
)

// What a Conn may find out about its servers, beside what they answer. Errors match these.
var (
	// ErrReplica says that the server must not be asked for locks: it is a replica or a sentinel.
	ErrReplica = errors.New("the server is a replica or a sentinel")
	// ErrClusterNode is for a client that is none for a Cluster.
	ErrClusterNode = errors.New(
		"the server is a node of a Cluster, and the client takes it for a server that stands alone")
	// ErrNoOwner says that a slot of a Cluster is served by nobody.
	ErrNoOwner = errors.New("no node of the Cluster owns the slot")
	// ErrStranger is for the address of a node that the client has not heard of yet.
	ErrStranger = errors.New("no node of the Cluster has named it")
	// ErrUnsent says that nothing of a command has left this process.
	ErrUnsent = errors.New("the connection broke before the command was sent")
)

// RefusedError says that the server refused a call before it ran, so nothing happened: wrong password, no permission,
// not a primary, a Cluster that is down.
type RefusedError struct {
	Err error // the server's message
}

// Error is the server's message.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// InScript says of a server's answer that it is a command in a script that has failed. Since Redis 7 such an error
// keeps its code. The commands before it have run.
func InScript(answer string) bool {
	return strings.Contains(answer, " script: ") && strings.Contains(answer, "@user_script")
}
