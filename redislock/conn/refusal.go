// Errors that a Conn finds out by itself, and RefusedError. judge.go recognizes them.

package conn

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// What a Conn may find out about its servers beside their answers. Errors match these by errors.Is.
var (
	// ErrReplica says that the server must not be asked for locks: it is a replica or a Sentinel.
	ErrReplica = errors.New("the server is a replica or a sentinel")
	// ErrClusterNode says that the server is a node of a Cluster, but the client is none for a Cluster.
	ErrClusterNode = errors.New(
		"the server is a node of a Cluster, and the client takes it for a server that stands alone")
	// ErrNoOwner says that no node serves the slot of a Cluster.
	ErrNoOwner = errors.New("no node of the Cluster owns the slot")
	// ErrStranger says that an address is of a node which no node of the Cluster has named to the client.
	ErrStranger = errors.New("no node of the Cluster has named it")
	// ErrUnsent says that no byte of a command has left this process, so it cannot run.
	ErrUnsent = errors.New("the connection broke before the command was sent")
)

// Broke reports whether err says that a connection ended before the answer to a call came, as it does when the server
// closes one that was idle, or is killed. So another connection may be made at once, but the call may have run. A
// connection that hangs has not ended.
func Broke(err error) bool {
	var refused *RefusedError
	if err == nil || errors.As(err, &refused) {
		return false
	}
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// RefusedError says that the server refused a call before it ran, so nothing happened: wrong password, no permission,
// not a primary, a Cluster that is down. It wraps the server's own error.
type RefusedError struct {
	Err error // the server's message
}

// Error is the server's message.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// InScript reports whether a server's answer is the error of a command inside a script. Since Redis 7 such an error
// keeps its code, so the code alone does not tell. The commands before it in the script have run.
func InScript(answer string) bool {
	return strings.Contains(answer, " script: ") && strings.Contains(answer, "@user_script")
}
