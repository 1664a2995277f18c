package target

import (
	"regexp"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/drivertest/servers"
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
