// Package webpage is where the command and what it serves over HTTP meet: the page of "interlock console", the states
// of "interlock serve terraform" and the locks of "interlock serve http". It has no HTTP itself: package serve sets
// Serve, ServeStates and ServeLocks when it is linked, as engines register their URL schemes. The light build of the
// command does not link it (docs/rationale.md, The console).
package webpage

import (
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/interlock-go/interlock"
)

// Serve serves the page until a signal comes or ctx ends. It is nil in a build without the page. A wrong flag is an
// error of type FlagError.
var Serve func(ctx context.Context, o *Options) error

// ServeStates serves states of Terraform until a signal comes or ctx ends. It is nil where Serve is.
var ServeStates func(ctx context.Context, o *States) error

// ServeLocks serves mutexes until a signal comes or ctx ends. It is nil where Serve is.
var ServeLocks func(ctx context.Context, o *Locks) error

// ClosingTime is how long requests that are under way may take when the page ends. Streams end at once.
const ClosingTime = 3 * time.Second

// Server are the flags that all servers have, and what they need of the command.
type Server struct {
	Name            string   // of the command, for errors
	Listen          string   // address to listen on
	TokenFile       string   // empty: everybody is let in, so Listen must be a loopback address
	TLSCert, TLSKey string   // files in PEM; both or none
	Hosts           []string // names by which clients reach the server, beside localhost and addresses

	Logger *slog.Logger
	// Ready is told the address, as soon as it listens there. An error ends the server.
	Ready func(address net.Addr) error
}

// TLS reports whether it is served over HTTPS.
func (o *Server) TLS() bool { return o.TLSCert != "" }

// Options are the flags of console, and what the page needs of the command.
type Options struct {
	Server

	Prefix     string        // only locks whose names start with it
	Interval   time.Duration // between two looks at the engine
	AllowBreak bool
	AuditFile  string // empty: Stderr

	Timeout time.Duration // for one answer of the engine
	Stderr  io.Writer     // gets whole lines

	// Open opens the engine, once.
	Open func(context.Context) (*Engine, error)
}

// States are the flags of serve terraform, and what it needs of the command.
type States struct {
	Server

	Folder  string        // where the states are
	MaxHold time.Duration // of a run; 0 is without end

	// Open opens the engine, once, and returns what closes it.
	Open func(context.Context) (*interlock.Client, func() error, error)
}

// Locks are the flags of serve http, and what it needs of the command.
type Locks struct {
	Server

	MaxLeases int
	Timeout   time.Duration // for one answer of the engine

	// Open opens the engine, once, and returns what closes it.
	Open func(context.Context) (*interlock.Client, func() error, error)
}

// Loopback reports whether only this machine reaches the address.
func Loopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Engine is what the page shows.
type Engine struct {
	Client *interlock.Client
	URL    string                             // without its password
	Doctor func(context.Context) (any, error) // the page's answer to interlock doctor
	Close  func() error                       // ends the client and the driver
}

// FlagError is a wrong flag.
type FlagError string

// Error says what is wrong.
func (e FlagError) Error() string { return string(e) }
