package filelock

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// Holds on a descriptor are beside each other or not as those of a driver are.
func TestAcquireOn_ReadersWritersAndPermits(t *testing.T) {
	for name, row := range map[string]struct {
		first, beside, not *driver.Request
	}{
		"read":    {reader("1"), reader("2"), writer("3")},
		"write":   {writer("1"), nil, reader("3")},
		"permits": {permits("1", 3, 2), permits("2", 3, 1), permits("3", 3, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, t.TempDir())
			shell := shellFile(t, d, row.first.Key)
			if _, err := d.AcquireOn(t.Context(), row.first, shell); err != nil {
				t.Fatal(err)
			}
			if row.beside != nil {
				if err := tryInside(t, d, row.beside); err != nil {
					t.Errorf("beside it: %v", err)
				}
			}
			if err := tryInside(t, d, row.not); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("what cannot be beside it: got %v", err)
			}
			if err := shell.Close(); err != nil {
				t.Error(err)
			}
			again := *row.not
			again.ID = "4"
			if err := tryInside(t, d, &again); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}
