package servers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
)

// postgresAs is the beginning of a command line that runs the rest as another user; empty if the own will do.
type postgresAs []string

// postgresRunner returns how to run the server. It has to die with the test's process also as another user: the system
// forgets that wish when the user changes, so setpriv repeats it.
func postgresRunner() postgresAs {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{postgresUser, "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return postgresAs{
				"setpriv", "--reuid=" + u.Uid, "--regid=" + u.Gid, "--clear-groups", "--pdeathsig=KILL", "--",
			}
		}
	}
	return nil // the server itself says why it does not start
}

// args are those of the first word of the command line that runs program with args.
func (as postgresAs) args(program string, args ...string) []string {
	if len(as) == 0 {
		return args
	}
	return append(append(slices.Clone([]string(as[1:])), program), args...)
}

// own gives files to the user, and lets it pass to the folder in which they are.
func (as postgresAs) own(folder string, files ...string) error {
	if len(as) == 0 {
		return nil
	}
	uid, errUID := strconv.Atoi(strings.TrimPrefix(as[1], "--reuid="))
	gid, errGID := strconv.Atoi(strings.TrimPrefix(as[2], "--regid="))
	if err := errors.Join(errUID, errGID); err != nil {
		return err
	}
	for _, file := range files {
		if err := os.Chown(file, uid, gid); err != nil {
			return err
		}
	}
	if folder == "" {
		return nil
	}
	// The folder and the one above are the test's own, and only their names may be read by others then.
	return errors.Join(os.Chmod(folder, 0o711), os.Chmod(filepath.Dir(folder), 0o711))
}

// lend gives the user what a clock is made of, because the server's dynamic loader runs as that user.
func (as postgresAs) lend(c *Clock) error {
	if c == nil {
		return nil
	}
	return as.own(filepath.Dir(c.library), c.library, c.file.Name())
}

// family returns the server's processes, the first one first.
func (n *PostgresNode) family() []*os.Process {
	first := n.current().PID()
	var all []*os.Process
	add := func(pid int) {
		if p, err := os.FindProcess(pid); err == nil { // it always is, on systems that have this server
			all = append(all, p)
		}
	}
	add(first)
	out, err := exec.CommandContext(context.Background(), "ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		n.t.Logf("ps: %v", err) // the first process is the one that matters most
		return all
	}
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		if _, err := fmt.Sscan(line, &pid, &parent); err == nil && parent == first {
			add(pid)
		}
	}
	return all
}

// Kill ends the server as kill -9 of all its processes does, and returns when the first one is gone. It may
// be called more than once.
func (n *PostgresNode) Kill() {
	if !n.Alive() {
		return
	}
	// The first process is stopped before, so that it has no more children than are found.
	_ = n.current().Suspend() // an error says that it has ended
	for _, p := range slices.Backward(n.family()) {
		_ = p.Kill() // likewise
	}
	n.Server.Kill()
}

// Restart starts the server again with the data that it left behind, as [Server.Restart] does.
func (n *PostgresNode) Restart() {
	n.t.Helper()
	n.Kill()
	n.Server.Restart()
}

// Revive starts a server again that has ended by itself, as [Server.Revive] does.
func (n *PostgresNode) Revive() {
	n.t.Helper()
	if n.fails() {
		n.Restart()
	}
}

// Stop makes the server hang: connections stay, new ones are accepted, and nothing is answered
// until [PostgresNode.Cont].
func (n *PostgresNode) Stop() {
	n.t.Helper()
	n.Server.Stop()
	for _, p := range n.family()[1:] {
		_ = childproc.Suspend(p) // an error says that it has ended
	}
}

// Cont lets a server that was stopped go on.
func (n *PostgresNode) Cont() {
	n.t.Helper()
	for _, p := range n.family()[1:] {
		_ = childproc.Resume(p) // an error says that it has ended
	}
	n.Server.Cont()
}

// postgresStarting is the SQLSTATE of a server that is not ready yet.
const postgresStarting = "57P03"

// postgresServes asks for a session, and takes every answer but the one of a server that starts for a sign that it
// serves: also the wish for a password or for TLS.
func postgresServes(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is lost with it
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	} else if err := conn.SetDeadline(time.Now().Add(pollOnce)); err != nil {
		return err
	}
	const version3 = 3 << 16
	words := "user\x00" + postgresUser + "\x00database\x00postgres\x00\x00"
	hello := binary.BigEndian.AppendUint32(nil, uint32(8+len(words)))
	hello = binary.BigEndian.AppendUint32(hello, version3)
	if _, err := conn.Write(append(hello, words...)); err != nil {
		return err
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	if head[0] != 'E' {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(conn, int64(binary.BigEndian.Uint32(head[1:]))-4))
	if err == nil && strings.Contains(string(text), "C"+postgresStarting+"\x00") {
		return fmt.Errorf("it is starting: %q", text)
	}
	return err
}
