// Package interlocktest is an engine for the tests of programs that use interlock. It keeps locks in memory, fails when
// it is told to, and reports at the end of a test which locks were not given back.
//
//	func TestImport_ThatLosesItsLock_StopsWriting(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			store := interlocktest.New(t, nil)
//			locks := store.Client(nil)
//			go Import(t.Context(), locks, records)
//			synctest.Wait() // until it is inside, and writes nothing more
//			store.Lose(interlock.KindMutex, "import")
//			synctest.Wait()
//			// ... look at what Import has done
//		})
//	}
//
// Each client is like another process: its holds exclude those of the others. Faults concern all clients, except for
// Suspend. docs/testing.md says what the code under test sees of each.
//
// Inside a testing/synctest bubble leases run by the bubble's clock, so an hour of renewals takes no time, and
// synctest.Wait replaces every sleep. New and Client must then be called in the bubble. Outside of one, time is real.
//
// The locks are those of package memlock, so what they promise is what the engine memory promises. That is no proof
// that a program works on another engine: test that with the engine itself.
package interlocktest
