package interlock

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestTraits_AreTheEnginesAndNobodyElses(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		got := c.Traits()
		if got.Engine != "memory" || !got.Supports(KindMutex) {
			t.Errorf("%+v", got)
		}
		got.Kinds[0] = "changed"
		if again := c.Traits(); again.Kinds[0] == "changed" || !c.Traits().Supports(driver.KindMutex) {
			t.Errorf("%+v", again)
		}
	})
	if got := new(Client).Traits(); got.Engine != "" || got.Kinds != nil {
		t.Errorf("a client that nobody has made has %+v", got)
	}
}
