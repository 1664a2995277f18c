// Package redisd starts the Redis that a run measures on, and counts what its clients send.
package redisd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
	goredis "github.com/redis/go-redis/v9"
)

const (
	host = "127.0.0.1"

	// Ports are below those that systems give to outgoing connections.
	firstPort, lastPort = 10_000, 19_999

	// attempts is how often a start is tried: the port may be taken.
	attempts = 20

	startTimeout = 20 * time.Second

	// clients is more than a herd needs with several connections for each client. A server whose limit of open files is
	// lower takes less.
	clients = 15_000
)

// ErrMissing says that there is no Redis on PATH.
var ErrMissing = errors.New("no redis-server or valkey-server on PATH; scenarios without Redis need none")

// Server is a Redis that writes nothing to disk.
type Server struct {
	Addr    string // host:port
	Version string // as it says

	process *childproc.Process
	dir     string
}

// Start starts a server, and returns when it answers. It is killed when ctx ends, and on Linux also when this process
// does.
func Start(ctx context.Context) (*Server, error) {
	binary, err := find()
	if err != nil {
		return nil, err
	}
	for range attempts {
		var s *Server
		if s, err = launch(ctx, binary); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func find() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrMissing
}

func launch(ctx context.Context, binary string) (*Server, error) {
	dir, err := os.MkdirTemp("", "interlock-bench-redis-")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(firstPort + rand.IntN(lastPort-firstPort+1))
	s := &Server{Addr: net.JoinHostPort(host, port), dir: dir}
	cmd := exec.CommandContext(ctx, binary, "--port", port, "--bind", host, "--dir", dir, "--save", "", "--appendonly",
		"no", "--maxclients", strconv.Itoa(clients), "--maxmemory-policy", "noeviction")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if s.process, err = childproc.Start(cmd, nil); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.await(ctx); err != nil {
		err = errors.Join(err, s.Close())
		return nil, fmt.Errorf("%s: %w; its log ends with: %s", binary, err, tail(log.Bytes()))
	}
	return s, nil
}

// await returns when the server answers, and with an error when it has ended: then the port was somebody else's.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c := goredis.NewClient(&goredis.Options{Addr: s.Addr, MaxRetries: -1, DialTimeout: time.Second, DialerRetries: 1})
	defer c.Close()
	for {
		select {
		case <-s.process.Exited():
			return errors.New("it " + s.process.State())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		if !listens(ctx, s.Addr) { // go-redis would log that
			continue
		}
		info, err := c.InfoMap(ctx, "server").Result()
		if err != nil {
			continue
		}
		if info["Server"]["process_id"] != strconv.Itoa(s.process.PID()) {
			return errors.New("another server has the port")
		}
		s.Version = info["Server"]["redis_version"]
		return nil
	}
}

func listens(ctx context.Context, addr string) bool {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Close kills the server and removes its folder.
func (s *Server) Close() error {
	s.process.Kill()
	return os.RemoveAll(s.dir)
}

func tail(log []byte) []byte {
	const shown = 1 << 10
	return bytes.TrimSpace(log[max(0, len(log)-shown):])
}
