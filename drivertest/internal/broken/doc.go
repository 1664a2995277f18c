// Package broken is the test of the conformance suite: a small sound engine, and drivers that are the same engine with
// one deliberate defect each. The suite must accept the sound one, and reject each defect for the promise that it
// breaks and for no other.
//
// The engine keeps its locks in this process and ends holds by their lease. It is written to be read beside the suite,
// not to be used: see memlock for an engine of the same sort.
//
// A defect is a condition where the sound engine does the right thing. Such conditions name other features too (an
// entry that is converted, retained or woken). There the engine stays sound, because those features have defects of
// their own and a defect may break one promise only.
package broken
