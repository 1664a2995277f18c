// The options of a driver. url.go reads them from a URL; New checks them before it connects.
//
// Most of what is checked here would otherwise be refused by the servers, with an error that names no option, and only
// when the first node is made. The root is ZooKeeper's path, so it follows ZooKeeper's rules and not those of lock
// names.

package zklock

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Options configures a driver. The zero value and nil mean the defaults.
type Options struct {
	// Timeout is the session timeout to ask for: how long a client that has vanished keeps its locks. The servers bound
	// it, by default to 2 to 20 of their ticks (4 s to 40 s), and the driver works with what they allow. Too short, and
	// a slow network loses locks; too long, and others wait for the dead. The default is 30 s. A driver that is opened
	// by URL asks for the client's Lease.
	Timeout time.Duration

	// Root is the node below which everything is kept. It is made if it is missing. All clients of one set of locks
	// need the same. The default is "/interlock".
	Root string

	// User and Password authenticate the client (scheme "digest"). The default is none.
	User, Password string

	// ACL is the ACL of every node that is made. By default only the same user has access if there is one, and
	// everybody otherwise.
	ACL []zk.ACL

	// TLS encrypts the connections. The default is plain text.
	TLS *tls.Config

	// Client is shown to operators as the session's. The default is "host:pid".
	Client string

	// Logger gets the changes of the session's state. The default discards them.
	Logger *slog.Logger

	_ struct{}
}

const (
	defaultRoot    = "/interlock"
	defaultTimeout = 30 * time.Second
	// ZooKeeper bounds a path only as a part of a request (jute.maxbuffer, 1 MiB). The root is in each request, so this
	// bounds what one costs.
	maxRoot = 256

	// leastTimeout is the shortest timeout that makes sense: a third of it passes between two signs of life. Servers
	// usually raise it to two of their ticks, so this only matters with servers that were configured for it.
	leastTimeout = 100 * time.Millisecond
)

// withDefaults returns a checked copy of o, with the defaults filled in. It accepts nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Root = cmp.Or(c.Root, defaultRoot)
	// The root of the whole tree becomes "", so that every path is the root, a slash and a name.
	c.Root = strings.TrimSuffix(c.Root, "/")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Client == "" {
		host, _ := os.Hostname() // without it only the name is missing
		c.Client = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.ACL == nil {
		// A nil ACL is the default, and an empty one a mistake, which is refused below.
		c.ACL = zk.WorldACL(zk.PermAll)
		if c.User != "" {
			c.ACL = zk.AuthACL(zk.PermAll) // the authenticated user, whoever that is
		}
	}
	switch {
	case c.Timeout < leastTimeout:
		return c, fmt.Errorf("zk: a session's timeout must be at least %v, not %v", leastTimeout, c.Timeout)
	case c.Password != "" && c.User == "":
		return c, errors.New("zk: there is a password but no user")
	case strings.Contains(c.User, ":"):
		return c, errors.New("zk: a user must not have a colon: it ends the name in ZooKeeper's scheme digest")
	case len(c.ACL) == 0:
		return c, errors.New("zk: an empty ACL would let nobody in")
	}
	return c, checkRoot(c.Root)
}

// checkRoot refuses what ZooKeeper would refuse, and what it keeps for itself.
func checkRoot(root string) error {
	if root == "" { // the root of the whole tree
		return nil
	}
	if !strings.HasPrefix(root, "/") || len(root) > maxRoot {
		return fmt.Errorf("zk: the root begins with a slash and has at most %d bytes", maxRoot)
	}
	for _, part := range strings.Split(root[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return errors.New(`zk: the root must not have empty parts, "." or ".."`)
		}
	}
	for _, r := range root {
		if isForbidden(r) {
			return fmt.Errorf("zk: ZooKeeper allows no %q in the root", r)
		}
	}
	if root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/") {
		return errors.New("zk: /zookeeper is ZooKeeper's own")
	}
	return nil
}

// isForbidden reports whether ZooKeeper does not allow r in a path. That is control characters, surrogates, the private
// use area, the specials, and all beyond the first plane of Unicode, which Java sees as surrogates.
func isForbidden(r rune) bool {
	return r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}
