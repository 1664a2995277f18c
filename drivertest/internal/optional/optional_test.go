package optional

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// bare has every method, none of which is called.
type bare struct {
	driver.Driver
	driver.Renewer
	driver.Requeuer
	driver.Inspector
	driver.Breaker
	driver.Diagnoser
}

func TestShow_HasTheInterfacesOfEachSetAndNoOthers(t *testing.T) {
	for set := range Set(1 << 5) {
		if got := Of(Show(bare{}, set)); got != set {
			t.Errorf("shown with the set %05b, a driver has %05b", set, got)
		}
	}
}
