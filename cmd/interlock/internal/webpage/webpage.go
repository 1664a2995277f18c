// Package webpage is where the command and the web page of "interlock console" meet. It has no HTTP: whatever serves
// the page, package serve, sets Serve when it is linked, as engines register their URL schemes. The light build of the
// command does not link it (docs/adr/0048).
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

// ClosingTime is how long requests that are under way may take when the page ends. Streams end at once.
const ClosingTime = 3 * time.Second

// Options are the flags of console, and what the page needs of the command.
type Options struct {
	Listen          string // address to listen on
	Prefix          string
	Interval        time.Duration
	AllowBreak      bool
	AuditFile       string // empty: Stderr
	TokenFile       string // empty: everybody is let in, so Listen must be a loopback address
	Hosts           []string
	TLSCert, TLSKey string // files in PEM; both or none

	Timeout time.Duration // for one answer of the engine
	Logger  *slog.Logger
	Stderr  io.Writer // gets whole lines

	// Open opens the engine, once.
	Open func(context.Context) (*Engine, error)
	// Ready is told where the page is, when it listens. An error ends it.
	Ready func(address net.Addr) error
}

// TLS reports whether the page is served over HTTPS.
func (o *Options) TLS() bool { return o.TLSCert != "" }

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
	Close  func() error
}

// FlagError is a wrong flag of console.
type FlagError string

// Error says what is wrong.
func (e FlagError) Error() string { return string(e) }
