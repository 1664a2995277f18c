package servers_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

func newStage(t *testing.T) *servers.Stage {
	t.Helper()
	stage, err := servers.NewStage()
	if err != nil {
		t.Fatal(err)
	}
	return stage
}

func TestStage_StartsAServerForAProgram_AndEndsItWithItsData(t *testing.T) {
	servers.Redis(t) // skips where there is none
	stage := newStage(t)
	var node *servers.RedisNode
	if err := stage.Play(func(t testing.TB) { node = servers.RedisServer(t, nil) }); err != nil {
		t.Fatal(err)
	}
	if answer, err := node.Do(t.Context(), "PING"); err != nil || answer != "PONG" {
		t.Errorf("the server answers %v, %v; want PONG", answer, err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	if node.Alive() {
		t.Error("the server outlived the stage")
	}
	if _, err := os.Stat(node.Dir); !os.IsNotExist(err) {
		t.Errorf("the server's folder is still there (%v)", err)
	}
}

func TestStage_AServerThatIsNotInstalled_IsErrMissingWithWhatToInstall(t *testing.T) {
	t.Setenv("INTERLOCK_REQUIRE", "")
	stage := newStage(t)
	defer stage.Close()
	after := false
	err := stage.Play(func(t testing.TB) {
		servers.Start(t,
			servers.Spec{Name: "nosuch", Binaries: []string{"interlock-nosuch-server"}, Install: "the nosuch package"})
		after = true
	})
	if !errors.Is(err, servers.ErrMissing) || !strings.Contains(err.Error(), "install the nosuch package") {
		t.Errorf("got %v; want ErrMissing and what to install", err)
	}
	if after {
		t.Error("the program went on without its server")
	}
	if err := stage.Play(func(testing.TB) {}); err != nil {
		t.Errorf("a play that goes well returns the failure of the one before: %v", err)
	}
}

func TestStageClose_RunsWhatItsCleanupsLeave_LastFirst(t *testing.T) {
	stage := newStage(t)
	var order []string
	err := stage.Play(func(t testing.TB) {
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() {
			order = append(order, "second")
			t.Cleanup(func() { order = append(order, "left by second") })
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	if want := []string{"second", "left by second", "first"}; !slices.Equal(order, want) {
		t.Errorf("the clean-ups ran as %q; want %q", order, want)
	}
}
