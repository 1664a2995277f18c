package target

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// A Redis whose power was cut comes back with what it had heard before.
func TestPowerCut_TakesAloneWhatCameMeanwhile(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: eachSecond})
	if _, err := s.Do(t.Context(), "SET", "old", "1"); err != nil {
		t.Fatal(err)
	}
	err := loseWhatComes(t.Context(), s, 0, func() {
		if _, err := s.Do(t.Context(), "SET", "new", "1"); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"old": "1", "new": "0"} {
		if got, err := s.Do(t.Context(), "EXISTS", key); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s is there %v times, %v; want %s", key, got, err, want)
		}
	}
}
