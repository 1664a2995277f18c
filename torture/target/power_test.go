package target

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// A Redis whose power was cut comes back, with what it had heard before the last second.
func TestPowerCut_TakesTheLastSecondAlone(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: eachSecond})
	if _, err := s.Do(t.Context(), "SET", "old", "1"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { // ends with its answer
		time.Sleep(20 * time.Millisecond) // real: later than the instant from which it is lost
		_, err := s.Do(t.Context(), "SET", "new", "1")
		done <- err
	}()
	dice := rand.New(rand.NewPCG(1, 1)) // the power goes later than that
	if err := cutPower(s)(t.Context(), dice, 0); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"old": "1", "new": "0"} {
		if got, err := s.Do(t.Context(), "EXISTS", key); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s is there %v times, %v; want %s", key, got, err, want)
		}
	}
}
