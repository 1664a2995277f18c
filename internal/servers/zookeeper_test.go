package servers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/longrun"
)

func TestZooKeeperServer_ServesAndComesBack(t *testing.T) {
	t.Parallel()
	n := ZooKeeperServer(t, nil)
	for range 2 {
		answer, err := n.Ask(bounded(t), "srvr")
		if err != nil || !strings.Contains(answer, "Mode: standalone") {
			t.Fatalf("srvr: %q, %v", answer, err)
		}
		n.Restart()
	}
}

func TestZooKeeperServer_TakesConfigAndProperties(t *testing.T) {
	t.Parallel()
	n := ZooKeeperServer(t, &ZooKeeperOptions{
		Config:     map[string]string{"maxSessionTimeout": "1234"},
		Properties: map[string]string{"interlock.test": "here"},
	})
	for word, want := range map[string]string{"conf": "maxSessionTimeout=1234", "envi": "java.version"} {
		if answer, err := n.Ask(bounded(t), word); err != nil || !strings.Contains(answer, want) {
			t.Errorf("%s says %q, %v, want %q", word, answer, err, want)
		}
	}
}

func TestZooKeeperEnsemble_ElectsAnotherLeader(t *testing.T) {
	longrun.Only(t)
	t.Parallel()
	e := NewZooKeeperEnsemble(t, nil)
	if n := len(e.Followers()); n != ensembleSize-1 {
		t.Errorf("%d followers", n)
	}
	old := e.KillLeader()
	if now := e.Leader(); now == old || e.At(now.Addr()) != now {
		t.Errorf("%s leads after it was killed", now.Addr())
	}
	old.Restart()
	e.AwaitReady()
	if n := len(e.Followers()); n != ensembleSize-1 {
		t.Errorf("%d followers after the killed node has come back", n)
	}
}

func TestMissingZooKeeper_IsNamed(t *testing.T) {
	spec := zooSpec(nil, nil, nil)
	spec.Binaries = []string{zooJars[0] + ".missing"}
	w := witnessed(t, func(w *witness) { Start(w, spec) })
	if said := w.skipped + w.failed; !strings.Contains(said, "install zookeeper") {
		t.Errorf("skipped %q, failed %q", w.skipped, w.failed)
	}
}

// What a full disk leaves of a log that was to be begun keeps a server from starting.
func TestZooKeeperServer_WithAnEmptyLog_IsRevived(t *testing.T) {
	t.Parallel()
	n := ZooKeeperServer(t, nil)
	n.Revive() // one that serves is left alone
	pid := n.current().PID()
	n.Kill()
	if err := os.WriteFile(filepath.Join(n.Dir, zooData, "version-2", "log.ffff"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.Revive()
	if answer, err := n.Ask(bounded(t), "srvr"); err != nil || !strings.Contains(answer, "Mode: standalone") {
		t.Errorf("srvr: %q, %v", answer, err)
	}
	if n.current().PID() == pid {
		t.Error("the server that was killed is said to run")
	}
}
