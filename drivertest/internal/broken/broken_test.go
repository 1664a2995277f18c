package broken_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/drivertest/internal/broken"
	"github.com/interlock-go/interlock/internal/longrun"
)

// examine runs every promise on an engine with a defect, in virtual time.
func examine(t *testing.T, defect broken.Defect) (report *drivertest.Report) {
	synctest.Test(t, func(t *testing.T) {
		store := broken.NewStore(defect)
		report = drivertest.Examine(t, drivertest.Harness{
			Open: func(context.Context, *testing.T) driver.Driver { return store.Client() },
			Hang: func(*testing.T) func() { return store.Hang() },
		})
	})
	return report
}

// explain logs each failed behaviour of the report, with the reason.
func explain(t *testing.T, report *drivertest.Report) {
	for _, b := range report.Behaviours {
		if b.Status == drivertest.Failed {
			t.Logf("%s: %s:\n\t%s", b.Promise, b.Behaviour, b.Reason)
		}
	}
}

func TestTheSoundEngineIsAccepted(t *testing.T) {
	report := examine(t, broken.None)
	if len(report.Broken()) > 0 {
		explain(t, report)
		t.Errorf("rejected for %q", report.Broken())
	}
}

func TestEachDefectIsRejectedForItsPromiseAndNoOther(t *testing.T) {
	refused := make(map[drivertest.Promise]bool)
	for _, defect := range broken.All() {
		if !longrun.On() && refused[defect.Promise] {
			continue // one of each promise: each defect has the whole suite examined
		}
		refused[defect.Promise] = true
		t.Run(defect.Name, func(t *testing.T) {
			report := examine(t, defect)
			explain(t, report)
			if got, want := report.Broken(), []drivertest.Promise{defect.Promise}; !slices.Equal(got, want) {
				t.Errorf("rejected for %q, want %q", got, want)
			}
		})
	}
}

func TestEachPromiseHasADefect(t *testing.T) {
	tried := make(map[drivertest.Promise]bool)
	for _, defect := range broken.All() {
		tried[defect.Promise] = true
	}
	for _, v := range examine(t, broken.None).Promises {
		if !tried[v.Promise] {
			t.Errorf("no defect breaks %q", v.Promise)
		}
	}
}
