package servers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// Redis starts a Redis, or a Valkey where there is no Redis, and returns its host:port. It has no password and writes
// nothing to disk.
func Redis(t testing.TB) string {
	t.Helper()
	return Start(t, redis()).Addr()
}

func redis() Spec {
	return Spec{
		Name:     "redis",
		Binaries: []string{"redis-server", "valkey-server"},
		Install:  "redis-server (Debian, Ubuntu), redis (Homebrew) or valkey",
		Args: func(s Site) []string {
			return []string{
				"--port", strconv.Itoa(s.Ports[0]), "--bind", s.Host, "--dir", s.Dir,
				"--save", "", "--appendonly", "no", "--daemonize", "no",
			}
		},
		Ready: func(ctx context.Context, s Site) error { return pingRedis(ctx, s.addr(0)) },
	}
}

// pingRedis asks in the inline form of the protocol. While the server loads its data it answers with an error.
func pingRedis(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(answer) != "+PONG" {
		return fmt.Errorf("PING is answered %q", answer)
	}
	return nil
}
