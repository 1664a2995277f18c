package longrun_test

import (
	"testing"

	"github.com/interlock-go/interlock/internal/longrun"
)

func TestOf_IsTheFullSizeInALongRunAlone(t *testing.T) {
	t.Setenv(longrun.Variable, "")
	if got := longrun.Of(3, 100); got != 3 || longrun.On() {
		t.Errorf("the usual size is %d, in a long run: %v", got, longrun.On())
	}
	t.Setenv(longrun.Variable, "1")
	if got := longrun.Of(3, 100); got != 100 || !longrun.On() {
		t.Errorf("the full size is %d, in a long run: %v", got, longrun.On())
	}
}

func TestOnly_SkipsUnlessTheRunIsLong(t *testing.T) {
	for value, skips := range map[string]bool{"": true, "1": false} {
		t.Setenv(longrun.Variable, value)
		skipped := false
		t.Run("with "+longrun.Variable+"="+value, func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			longrun.Only(t)
		})
		if skipped != skips {
			t.Errorf("%q: skipped %v, want %v", value, skipped, skips)
		}
	}
}
