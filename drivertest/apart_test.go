package drivertest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// victimEnv says what TestApart_Victim is to do.
const victimEnv = "INTERLOCK_DRIVERTEST_VICTIM"

// TestApart_Victim is run by TestApart alone, in a process that starts another for it.
func TestApart_Victim(t *testing.T) {
	fate := os.Getenv(victimEnv)
	if fate == "" || Apart(t) {
		return
	}
	t.Run("chosen", func(t *testing.T) {
		switch fate {
		case "fail":
			t.Error("it has gone wrong")
		case "panic":
			panic("it has panicked")
		}
	})
	t.Run("not chosen", func(t *testing.T) { t.Error("a subtest that -run has left out") })
	if fate == "skip" {
		t.Skip("there is no server")
	}
}

func TestApart(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fate, says string
		fails      bool
	}{
		{"pass", "--- PASS: TestApart_Victim ", false},
		{"fail", "it has gone wrong", true},
		{"panic", "it has panicked", true},
		{"skip", "there is no server", false},
	} {
		t.Run(c.fate, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^TestApart_Victim$/^chosen$")
			cmd.Env = append(os.Environ(), victimEnv+"="+c.fate)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, and said:\n%s", err, out)
			}
			if result := "\n--- SKIP: TestApart_Victim "; strings.Contains(string(out), result) != (c.fate == "skip") {
				t.Errorf("want a skip only of who is skipped:\n%s", out)
			}
		})
	}
}
