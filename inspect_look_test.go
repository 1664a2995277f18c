package interlock

import (
	"errors"
	"strings"
	"testing"
)

func TestLook_TellsAboutOneLockAndNoOther(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		longer := mustLock(t, t.Context(), c, "stock:42")
		if info, err := c.Look(t.Context(), KindMutex, "stock:4"); err != nil || info.Name != "stock:4" ||
			len(info.Holders) > 0 {
			t.Errorf("a free lock: %+v, %v", info, err)
		}
		info, err := c.Look(t.Context(), KindMutex, "stock:42")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Token != longer.Token() {
			t.Errorf("a held lock: %+v, %v", info, err)
		}
		mustUnlock(t, longer)
	})
}

func TestLook_RefusesWhatCannotBe(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		if _, err := c.Look(t.Context(), KindMutex, ""); err == nil || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("no name: %v", err)
		}
		if _, err := c.Look(t.Context(), "pillow", "a"); !errors.Is(err, ErrUnsupported) ||
			!strings.Contains(err.Error(), "pillow") {
			t.Errorf("no such kind: %v", err)
		}
	})
}
