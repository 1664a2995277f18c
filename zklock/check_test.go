package zklock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// says fails unless the finding is there.
func says(t *testing.T, findings []driver.Finding, check string, level driver.Level, part string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Level == level && strings.Contains(f.Detail, part) {
			return
		}
	}
	t.Errorf("there is no %s %s with %q in %+v", level, check, part, findings)
}

func TestDiagnose_OfOneServer_WarnsThatItStandsAlone(t *testing.T) {
	n := sharedServer(t)
	d := open(t, []string{n.Addr()}, &Options{Root: freshRoot(), Timeout: 5 * time.Second})
	findings := d.Diagnose(bounded(t))
	says(t, findings, "ensemble", driver.LevelWarn, "stands alone")
	says(t, findings, "servers", driver.LevelOK, "all 1")
	says(t, findings, "version", driver.LevelOK, "3.")
	says(t, findings, "session", driver.LevelOK, "5s")
	says(t, findings, "latency", driver.LevelOK, "answers in")
	says(t, findings, "access", driver.LevelOK, "everybody")
	if findings[0].Level != driver.LevelWarn {
		t.Errorf("the first finding is %+v, want the worst", findings[0])
	}
}

func TestDiagnose_OfAnEnsemble_NamesTheServerThatIsDown(t *testing.T) {
	e := sharedEnsemble(t)
	d := open(t, e.Addrs(), &Options{Root: freshRoot()})
	findings := d.Diagnose(bounded(t))
	says(t, findings, "ensemble", driver.LevelOK, "leader")
	says(t, findings, "servers", driver.LevelOK, "all 3")
	part := open(t, append(e.Addrs()[:2], "127.0.0.1:1"), &Options{Root: freshRoot()})
	says(t, part.Diagnose(bounded(t)), "servers", driver.LevelWarn, "127.0.0.1:1")
	one := open(t, e.Addrs()[:1], &Options{Root: freshRoot()})
	says(t, one.Diagnose(bounded(t)), "ensemble", driver.LevelWarn, "one server of an ensemble")
}

func TestDiagnose_SeesWhatDiffersFromTheSetUp(t *testing.T) {
	t.Parallel()
	n := servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
		Config: map[string]string{"maxSessionTimeout": "3000", "4lw.commands.whitelist": "ruok,srvr"},
	})
	a := newAdmin(t, n.Addr())
	root := freshRoot()
	if _, err := a.Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	d := open(t, []string{n.Addr()}, &Options{Root: root, User: "me", Password: "secret"})
	findings := d.Diagnose(bounded(t))
	says(t, findings, "session", driver.LevelWarn, "3s although 30s")
	says(t, findings, "access", driver.LevelWarn, "although a user is set")
	if got := d.Traits().Timeout; got != 3*time.Second {
		t.Errorf("the timeout is %v, want what the server allows", got)
	}
}

func TestDiagnose_SeesTheRoomForConnections(t *testing.T) {
	t.Parallel()
	n := servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{
		Config: map[string]string{"maxClientCnxns": "8", "4lw.commands.whitelist": "ruok,srvr,conf,cons"},
	})
	root := freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	says(t, d.Diagnose(bounded(t)), "clients", driver.LevelOK, "of 8 connections")
	for range 5 {
		open(t, []string{n.Addr()}, &Options{Root: root})
	}
	says(t, d.Diagnose(bounded(t)), "clients", driver.LevelWarn, "of 8 connections")
}

func TestDiagnose_OfAServerThatHangs_Ends(t *testing.T) {
	n := sharedServer(t)
	d := open(t, []string{n.Addr()}, &Options{Root: freshRoot()})
	n.Stop()
	defer n.Cont()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	over := alarm(300 * time.Millisecond)
	findings := d.Diagnose(ctx)
	ended := time.Now()
	if late := ended.Sub(<-over); late > 700*time.Millisecond {
		t.Errorf("it returned %v after its context had ended", late)
	}
	says(t, findings, "servers", driver.LevelFail, "nobody answers")
	says(t, findings, "latency", driver.LevelFail, "does not answer")
}

func TestCheckServers_JudgesWhatTheySay(t *testing.T) {
	alone := func(addr string) serverFacts { return serverFacts{addr: addr, mode: "standalone", version: "3.8.0"} }
	says(t, checkServers([]serverFacts{alone("a"), alone("b")}), "ensemble", driver.LevelFail, "stand alone")
	old := serverFacts{addr: "a", mode: "leader", version: "3.4.14"}
	says(t, checkServers([]serverFacts{old, {addr: "b", mode: "follower", version: "3.10.1"}}), "version",
		driver.LevelWarn, "3.4.14")
	says(t, checkServers([]serverFacts{old, old}), "ensemble", driver.LevelWarn, "as many may fail")
	says(t, checkServers([]serverFacts{{addr: "a"}}), "servers", driver.LevelWarn, "srvr is not allowed")
	says(t, checkServers([]serverFacts{{addr: "a", err: errors.New("gone")}}), "servers", driver.LevelFail, "gone")
}

func TestDiagnose_OfAClosedDriver(t *testing.T) {
	d, err := New(bounded(t), []string{sharedServer(t).Addr()}, &Options{Root: freshRoot()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	says(t, d.Diagnose(bounded(t)), "servers", driver.LevelFail, "closed")
	if _, err := d.Acquire(bounded(t), request("lock")); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Acquire after Close says %v", err)
	}
}
