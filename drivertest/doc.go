// Package drivertest checks that an engine keeps the promises of package driver. An engine of your own is checked in a
// few lines of a test file:
//
//	func TestConformance(t *testing.T) {
//		store := mine.NewStore(t.TempDir())
//		drivertest.Run(t, drivertest.Harness{
//			Open: func(ctx context.Context, t *testing.T) driver.Driver {
//				d, err := mine.New(ctx, store)
//				if err != nil {
//					t.Fatal(err)
//				}
//				return d
//			},
//		})
//	}
//
// # Promises
//
// The suite is sorted by [Promise]. Each promise is a file of this package, each behaviour a function of it and a
// subtest named by a sentence. A promise may be left out only by an Unsupported in the driver's Traits, with a reason;
// what is missing without such a declaration fails.
//
// # Time
//
// Nothing is asserted about speed but generous upper bounds, so that a loaded machine fails no sound driver. There is
// one exception, and it errs on the safe side: no hold may be granted to another client while its lease is still
// trusted. The suite runs inside a testing/synctest bubble too, if the engine does; use [Examine] there.
//
// # Goroutines
//
// After each behaviour all drivers are closed, and whatever goroutine is left counts as a failure. So nothing else may
// run in parallel with the suite in the same process.
//
// # Results
//
// If the environment names a folder in INTERLOCK_RESULTS, Run writes what it found there as JSON,
// one file for each engine.
//
// # The suite's own tests
//
// The package broken below internal has wrong drivers, at least one for each promise, which the suite must reject for
// that promise and for no other. Package faulty makes a sound driver's network bad.
package drivertest
