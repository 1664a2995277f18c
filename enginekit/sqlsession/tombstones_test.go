package sqlsession

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestTombstones_RememberTheLastAndTheUndoneUntilTheirHorizon(t *testing.T) {
	var g tombstones
	g.bury("lost", epitaph{reason: driver.LostBroken, token: 7})
	var lost *driver.LostError
	if err := g.of(&driver.Release{ID: "lost"}); !errors.As(err, &lost) || lost.Reason != driver.LostBroken || lost.Token != 7 {
		t.Errorf("of a broken one: %v", err)
	}
	g.bury("undone", epitaph{undone: true, until: time.Now().Add(time.Hour)})
	g.bury("long ago", epitaph{undone: true, until: time.Now().Add(-time.Second)})
	if !g.has("undone") || g.has("long ago") || g.has("never") {
		t.Error("undone IDs are not remembered until their horizon")
	}
	for i := range releasedKept {
		g.bury(fmt.Sprint(i), epitaph{released: true})
	}
	if g.has("lost") || !g.has("0") || len(g.ended) != releasedKept {
		t.Errorf("%d are remembered, want the last %d", len(g.ended), releasedKept)
	}
	for i := range 1000 {
		g.bury(fmt.Sprint("u", i), epitaph{undone: true, until: time.Now().Add(-time.Second)})
	}
	if len(g.undone) > 2*sweepLeast+2 {
		t.Errorf("%d undone IDs are kept whose horizon has passed", len(g.undone))
	}
}
