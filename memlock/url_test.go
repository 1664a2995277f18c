package memlock

import (
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func openURL(t *testing.T, url string) *Driver {
	t.Helper()
	d, err := driver.DefaultMux.Open(t.Context(), url, driver.Config{})
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	t.Cleanup(func() { d.Close() })
	return d.(*Driver)
}

func TestURL_NamesAStore(t *testing.T) {
	a, same, other, unnamed := openURL(t, "mem://a"), openURL(t, "mem://a"), openURL(t, "mem://b"), openURL(t, "mem://")
	mustAcquire(t, a, ask("1"))
	try := ask("2")
	try.Try = true
	if _, err := same.Acquire(t.Context(), try); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("through the same URL: %v, want ErrHeld", err)
	}
	mustAcquire(t, other, try)
	mustAcquire(t, unnamed, try)
}

func TestURL_AStoreIsForgottenWithItsLastClient_AndTokensStillGrow(t *testing.T) {
	d, peer := openURL(t, "mem://gone"), openURL(t, "mem://gone")
	first := mustAcquire(t, d, ask("1"))
	d.Close()
	try := ask("2")
	try.Try = true
	if _, err := peer.Acquire(t.Context(), try); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("while a client is left: %v, want ErrHeld", err)
	}
	peer.store.q.floor = first.Token + 1e6 // as if the clock had gone back by a second since
	peer.Close()
	again := mustAcquire(t, openURL(t, "mem://gone"), try)
	if again.Token <= first.Token+1e6 {
		t.Errorf("token %d after %d", again.Token, first.Token+1e6)
	}
}

func TestURL_ThatSaysTooMuch_IsRefusedAndNotRepeated(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"mem://user:hunter2@a", "user"},
		{"mem://:hunter2@", "user"},
		{"mem://a/hunter2", "path"},
		{"mem:///", "path"},
		{"mem://a,hunter2", "several"},
		{"mem://a?lease=hunter2", `unknown query key "lease"`},
	} {
		_, err := driver.DefaultMux.Open(t.Context(), tc.url, driver.Config{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an error that says %s and no secret", tc.url, err, tc.want)
		}
	}
}
