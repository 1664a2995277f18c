package metriclabels_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
)

func TestClasses_AreBounded_AndStayWhatTheyWere(t *testing.T) {
	var classes metriclabels.Classes
	var mu sync.Mutex
	told := map[string]string{}
	var asking sync.WaitGroup
	for worker := range 4 {
		asking.Go(func() {
			for n := range 2 * metriclabels.MostClasses {
				class := fmt.Sprint("class ", (n*7+worker)%(2*metriclabels.MostClasses))
				got := classes.Of(class)
				mu.Lock()
				if before, asked := told[class]; asked && before != got || got != class && got != metriclabels.Other {
					t.Errorf("%s counts as %s, and before as %q", class, got, before)
				}
				told[class] = got
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	own := 0
	for class, got := range told {
		if got == class {
			own++
		}
	}
	if own != metriclabels.MostClasses {
		t.Errorf("%d classes are told apart, want %d", own, metriclabels.MostClasses)
	}
	if got := classes.Of(metriclabels.Other); got != metriclabels.Other {
		t.Errorf("%s counts as %s", metriclabels.Other, got)
	}
}

func TestReason_IsOneOfAClosedSet(t *testing.T) {
	for _, r := range []interlock.LostReason{interlock.LostBroken, interlock.LostSuspended, "", "sharks"} {
		got := metriclabels.Reason(r)
		if !slices.Contains(metriclabels.Reasons(), got) || got != r && got != metriclabels.Other {
			t.Errorf("%q counts as %q", r, got)
		}
	}
}
