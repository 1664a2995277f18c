package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ZooKeeper starts a ZooKeeper that stands alone, and returns its host:port.
func ZooKeeper(t testing.TB) string {
	t.Helper()
	return ZooKeeperServer(t, nil).Addr()
}

// ZooKeeperOptions say what differs from a ZooKeeper without TLS. In an ensemble they apply to each node.
type ZooKeeperOptions struct {
	// Tick is the server's unit of time: sessions last two ticks at least, and end up to one tick late. The default is
	// 100 ms, so that tests may ask for short sessions.
	Tick time.Duration

	// Config holds lines of zoo.cfg, as in "maxSessionTimeout": "1000".
	Config map[string]string

	// Properties are Java's, as in "znode.container.checkIntervalMs": "500".
	Properties map[string]string

	// Network, if not nil, is where the nodes are, each a member of its own.
	Network *Network

	// Disk, if not nil, is where the nodes keep their data.
	Disk *Disk

	// Clock, if not nil, is the wall clock that the nodes see.
	Clock *Clock

	_ struct{}
}

// ZooKeeperNode is one ZooKeeper that was started, alone or in an ensemble.
type ZooKeeperNode struct{ *Server }

const (
	zooConf = "zoo.cfg"
	zooData = "data"
	zooMain = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
	zooTick = 100 * time.Millisecond

	// zooLongest is the longest session that a client may ask for.
	zooLongest = 10 * time.Minute
)

// ZooKeeperServer starts a ZooKeeper as o says; nil is the zero value. It keeps its data over [Server.Restart], but
// does not wait for the disk: only a loss of power would show that.
func ZooKeeperServer(t testing.TB, o *ZooKeeperOptions) *ZooKeeperNode {
	t.Helper()
	n := &ZooKeeperNode{}
	n.Server = Start(t, zooSpec(o, nil, func(ctx context.Context, s Site) error {
		return zooServes(ctx, s.addr(0))
	}))
	return n
}

// zooSpec returns how to start a node. Further lines of its configuration say who the others are.
func zooSpec(o *ZooKeeperOptions, others []string, ready func(ctx context.Context, s Site) error) Spec {
	if o == nil {
		o = &ZooKeeperOptions{}
	}
	classes := zooClasses()
	spec := Spec{
		Name: "zookeeper", Binaries: []string{"java"}, Install: "zookeeper (Debian, Ubuntu), or set ZOOKEEPER_HOME",
		Args:  func(Site) []string { return zooArgs(o, classes) },
		Ready: ready, Disk: o.Disk, Env: o.Clock.env(),
		Prepare: func(_ context.Context, s Site) error {
			return zooPrepare(o, others, s)
		},
	}
	if len(classes) == 0 {
		spec.Binaries = []string{zooJars[0]} // so that the message names what is missing
	}
	return spec
}

// zooJars are where distributions put the server.
var zooJars = []string{"/usr/share/java/zookeeper.jar", "/usr/local/share/java/zookeeper.jar"}

// zooClasses returns the class path of the installed server, or nothing. The jar of Debian names those that it needs.
func zooClasses() []string {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		if jars, err := filepath.Glob(filepath.Join(home, "lib", "zookeeper*.jar")); err == nil && len(jars) > 0 {
			return []string{filepath.Join(home, "lib", "*")}
		}
	}
	for _, jar := range zooJars {
		if _, err := os.Stat(jar); err != nil {
			continue
		}
		classes := []string{jar}
		if log := filepath.Join(filepath.Dir(jar), "slf4j-simple.jar"); exists(log) { // otherwise it says nothing
			classes = append(classes, log)
		}
		return classes
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// zooArgs make the virtual machine small and quick to start.
func zooArgs(o *ZooKeeperOptions, classes []string) []string {
	args := []string{
		"-Xmx128m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.forceSync=no",
	}
	for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
		args = append(args, "-D"+name+"="+o.Properties[name])
	}
	return append(args, "-cp", strings.Join(classes, string(os.PathListSeparator)), zooMain, zooConf)
}

func zooPrepare(o *ZooKeeperOptions, others []string, s Site) error {
	tick := o.Tick
	if tick == 0 {
		tick = zooTick
	}
	set := map[string]string{
		"tickTime": strconv.FormatInt(tick.Milliseconds(), 10),
		"dataDir":  filepath.Join(s.Dir, zooData), "clientPort": strconv.Itoa(s.Ports[0]), "clientPortAddress": s.Host,
		"admin.enableServer": "false", "4lw.commands.whitelist": "*", "maxClientCnxns": "0",
		"maxSessionTimeout": strconv.FormatInt(zooLongest.Milliseconds(), 10),
		// In ticks, which are short here, and a loaded machine stands still for some of them.
		"initLimit": "100", "syncLimit": "30",
	}
	maps.Copy(set, o.Config)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(set)) {
		b.WriteString(name + "=" + set[name] + "\n")
	}
	for _, line := range others {
		b.WriteString(line + "\n")
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, zooData), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, zooConf), []byte(b.String()), 0o600)
}

// Ask sends one of ZooKeeper's words of four letters, as in "srvr" or "dump", and returns what the server says.
func (n *ZooKeeperNode) Ask(ctx context.Context, word string) (string, error) {
	return askZooKeeper(ctx, n.Addr(), word)
}

// zooHeader is how many bytes the beginning of a log of transactions has.
const zooHeader = 16

// Revive starts a server again that has ended by itself, as [Server.Revive] does. One whose disk was full may have
// begun a log without having written its first bytes, and then refuses to start (ZOOKEEPER-1621): such a log, in which
// there is nothing, is removed before, as an operator has to.
func (n *ZooKeeperNode) Revive() {
	n.t.Helper()
	if !n.fails() {
		return
	}
	n.Kill()
	if err := n.removeEmptyLogs(); err != nil {
		n.t.Fatalf("zookeeper: %v", err)
	}
	n.Restart()
}

// removeEmptyLogs looks where the server sees its folder.
func (n *ZooKeeperNode) removeEmptyLogs() (err error) {
	n.spec.room().within(func() {
		logs, _ := filepath.Glob(filepath.Join(n.Dir, zooData, "version-*", "log.*")) // the pattern is well formed
		for _, log := range logs {
			if about, failed := os.Stat(log); failed != nil {
				err = errors.Join(err, failed)
			} else if about.Size() < zooHeader {
				err = errors.Join(err, os.Remove(log))
			}
		}
	})
	return err
}

func askZooKeeper(ctx context.Context, addr, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if end, bounded := ctx.Deadline(); bounded {
		_ = conn.SetDeadline(end)
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// zooServes returns an error unless the server at addr answers clients. In an ensemble it does when there is a leader.
func zooServes(ctx context.Context, addr string) error {
	_, err := zooMode(ctx, addr)
	return err
}

// zooMode returns what the server at addr is: standalone, leader or follower.
func zooMode(ctx context.Context, addr string) (string, error) {
	answer, err := askZooKeeper(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(answer) {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode), nil
		}
	}
	if answer == "" {
		return "", errors.New("it says nothing")
	}
	return "", fmt.Errorf("it says %q", strings.TrimSpace(answer))
}
