package servers

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMariaDB_Serves(t *testing.T) {
	t.Parallel()
	addr := MariaDB(t) // which takes a time of its own
	if err := mariaDBServes(bounded(t), addr); err != nil {
		t.Error(err)
	}
}

func TestMariaDBServer_ComesBackOnTheSameAddress(t *testing.T) {
	t.Parallel()
	n := MariaDBServer(t, &MariaDBOptions{SQL: []string{"CREATE USER bob@'%' IDENTIFIED BY 'secret';"}})
	addr := n.Addr()
	n.Kill()
	if err := mariaDBServes(bounded(t), addr); err == nil || n.Alive() {
		t.Error("a killed server answers")
	}
	n.Restart()
	if err := mariaDBServes(bounded(t), addr); err != nil || n.Addr() != addr {
		t.Errorf("it was on %s and comes back on %s: %v", addr, n.Addr(), err)
	}
	n.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := mariaDBServes(ctx, addr); err == nil {
		t.Error("a stopped server answers")
	}
}

func TestMariaDBServes_TellsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ greeting, says string }{
		{"\x04\x00\x00\x00\xffbad", "bad"},
		{"HTTP/1.1 400", "does not speak MySQL's protocol"},
		{"", "EOF"},
	} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { // ends with the one connection
			defer l.Close()
			if conn, err := l.Accept(); err == nil {
				_, _ = conn.Write([]byte(row.greeting))
				_ = conn.Close()
			}
		}()
		if err := mariaDBServes(bounded(t), l.Addr().String()); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%q: %v, want an error with %q", row.greeting, err, row.says)
		}
	}
}

func TestPack_KeepsFolders(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(from+"/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/x", "/a/y", "/a/b/z"} {
		if err := os.WriteFile(from+name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := pack(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := unpack(packed, to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/x", "/a/y", "/a/b/z"} {
		if got, err := os.ReadFile(to + name); string(got) != name {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}
