package target

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/torture/history"
)

func TestShares_AreWhatTheEngineSays(t *testing.T) {
	got, err := Ask(t.Context(), "file://"+t.TempDir(), 0)
	inFiles := []history.Share{history.Reads, history.Writes, history.Permits}
	if err != nil || !slices.Equal(got.Shares, inFiles) || got.Ordered {
		t.Errorf("files: %+v, %v, want %v, and no order", got, err, inFiles)
	}
	d := memlock.New(nil)
	defer func() { _ = d.Close() }()
	traits := d.Traits()
	want := []history.Share{
		history.Reads, history.Writes, history.Permits, history.Latch, history.Waits, history.Upgrades,
	}
	if got := sharesOf(traits); !slices.Equal(got, want) {
		t.Errorf("memory: %v, want %v", got, want)
	}
	traits.Kinds = traits.Kinds[:2]
	traits.Unsupported = append(traits.Unsupported, driver.Unsupported{Ability: driver.Conversion, Reason: "why not"})
	if got, want := sharesOf(traits), []history.Share{history.Reads, history.Writes}; !slices.Equal(got, want) {
		t.Errorf("%v: %v, want %v", traits.Kinds, got, want)
	}
	if got.Sessions {
		t.Error("files are said to have sessions")
	}
	if got.Recalls {
		t.Error("files are said to tell a holder that another process waits")
	}
	if got, err := Ask(t.Context(), "mem://recalls", 0); err != nil || !got.Recalls {
		t.Errorf("memory: %+v, %v, and it recalls", got, err)
	}
	if got, err := Ask(t.Context(), "nothing://", 0); err == nil {
		t.Errorf("an engine that there is not: %v", got)
	}
}
