package sqlsession

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestTombstones_SayHowAHoldWasLost_AndOfOthersThatThereIsNone(t *testing.T) {
	d := New(Config{}, nil)
	cause := errors.New("why")
	d.remember("lost", epitaph{reason: driver.LostBroken, token: 7, cause: cause})
	d.remember("released", epitaph{released: true})
	d.remember("undone", epitaph{undone: true, until: time.Now().Add(time.Hour)})
	d.remember("long ago", epitaph{undone: true, until: time.Now().Add(-time.Second)})
	var lost *driver.LostError
	if err := d.endOf(&driver.Release{ID: "lost"}); !errors.As(err, &lost) || lost.Reason != driver.LostBroken ||
		lost.Token != 7 || !errors.Is(lost.Cause, cause) {
		t.Errorf("of a broken one: %v", err)
	}
	for id, remembered := range map[string]bool{
		"lost": true, "released": true, "undone": true, "long ago": false,
		"never": false,
	} {
		if d.gone.Has(id) != remembered {
			t.Errorf("%s: remembered is %v", id, !remembered)
		}
		if err := d.endOf(&driver.Release{ID: id}); id != "lost" &&
			(errors.As(err, &lost) || !errors.Is(err, driver.ErrLost)) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
