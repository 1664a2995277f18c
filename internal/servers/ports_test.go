package servers

import (
	"errors"
	"testing"
)

func TestAgain_TriesMoreThanOnceAndSaysWhyAtLast(t *testing.T) {
	taken := errors.New("address already in use")
	for _, row := range []struct {
		failures, calls int
		want            error
	}{{0, 1, nil}, {1, 2, nil}, {attempts, attempts, taken}} {
		calls := 0
		err := again(func() error {
			if calls++; calls <= row.failures {
				return taken
			}
			return nil
		})
		if calls != row.calls || !errors.Is(err, row.want) {
			t.Errorf("with %d failures: %d calls and %v, want %d and %v", row.failures, calls, err, row.calls, row.want)
		}
	}
}

func TestFreePorts_AreChosenOnceOnly(t *testing.T) {
	chosen := make(map[int]bool)
	for range 20 {
		ports, err := freePorts(5)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range ports {
			if chosen[port] {
				t.Errorf("port %d was chosen twice", port)
			}
			chosen[port] = true
		}
	}
}
