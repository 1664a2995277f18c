package terraformlock

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/interlocktest"
)

// program finds Terraform or OpenTofu. Neither is in Debian, so the other tests speak its protocol themselves.
func program(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"tofu", "terraform"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("neither tofu nor terraform is installed")
	return ""
}

// configuration has a resource that needs no provider, whose creation lasts until a file is there.
const configuration = `
terraform {
  backend "http" {
    address        = "%[1]snet"
    lock_address   = "%[1]snet"
    unlock_address = "%[1]snet"
  }
}
resource "terraform_data" "job" {
  provisioner "local-exec" { command = "touch began; while [ ! -e go ]; do sleep 0.05; done" }
}
`

func TestTerraform_WaitsAndWrites(t *testing.T) {
	path, dir := program(t), t.TempDir()
	s := serve(t, interlocktest.New(t, nil), filepath.Join(dir, "states"), nil)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(configuration, s.url)
	if err := os.WriteFile(filepath.Join(work, "main.tf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), path, append(args, "-no-color")...)
		cmd.Dir, cmd.Env = work, append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=", "TF_INPUT=0")
		return cmd
	}
	if out, err := command("init").CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	first, said := command("apply", "-auto-approve"), new(bytes.Buffer)
	first.Stdout, first.Stderr = said, said
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Wait() }()
	waitForFile(t, filepath.Join(work, "began"), ended)
	if out, err := command("plan").CombinedOutput(); err == nil || !strings.Contains(string(out), "already locked") {
		t.Errorf("a plan beside a run: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("apply: %v\n%s", err, said)
	}
	if out, err := command("plan", "-detailed-exitcode").CombinedOutput(); err != nil { // 2 if there is something to do
		t.Errorf("a plan after the run: %v\n%s", err, out)
	}
	if state := s.ask(200, "GET", "net", ""); !strings.Contains(state, `"terraform_data"`) {
		t.Errorf("the state: %s", state)
	}
}

// waitForFile waits until a run has made a file, or has ended.
func waitForFile(t *testing.T, name string, ended <-chan error) {
	t.Helper()
	for {
		if _, err := os.Stat(name); err == nil {
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("the run ended before %s was there: %v", name, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
