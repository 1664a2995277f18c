package target

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// A Redis that is told a policy that there is not lists those that there are.
func TestPolicies_AreAllThatARedisHas(t *testing.T) {
	s := servers.RedisServer(t, nil)
	for _, policy := range policies {
		if _, err := s.Do(t.Context(), "CONFIG", "SET", "maxmemory-policy", policy); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
	}
	_, err := s.Do(t.Context(), "CONFIG", "SET", "maxmemory-policy", "nothing")
	if err == nil {
		t.Fatal("it knows a policy that there is not")
	}
	for _, policy := range regexp.MustCompile(`(allkeys|volatile)-\w+`).FindAllString(err.Error(), -1) {
		if !slices.Contains(policies, policy) {
			t.Errorf("the server has %s, which is never tried", policy)
		}
	}
}

func TestDeck_GivesEachOnceBeforeOneAgain(t *testing.T) {
	d := &deck{of: policies}
	for round := range uint64(5) {
		var drawn []string
		for range policies {
			// each fault has dice of its own
			drawn = append(drawn, d.draw(rand.New(rand.NewPCG(round, uint64(len(drawn))))))
		}
		for _, policy := range policies {
			if !slices.Contains(drawn, policy) {
				t.Errorf("round %d has no %s: %v", round, policy, drawn)
			}
		}
	}
}
