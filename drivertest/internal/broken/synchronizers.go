package broken

import "github.com/interlock-go/interlock/drivertest"

// The defects of looks, elections, latches, semaphores, adoptions and conditions.

// The defects of looks, elections and latches.
var (
	LookFindsLonger = Defect{"a look takes the name for a prefix", drivertest.Inspection}

	ValueOfTheFirst = Defect{"the next leader is shown with the value of the one before", drivertest.Electing}
	WatchMissesEnds = Defect{"a watch does not tell that nobody leads any more", drivertest.Electing}

	LatchCountsTwice   = Defect{"a count-down asked again counts again", drivertest.Latching}
	LatchSetTwice      = Defect{"a set asked again sets again", drivertest.Latching}
	LatchSetAnew       = Defect{"a latch that counts can be set", drivertest.Latching}
	LatchForgetsRounds = Defect{"a set forgets who has counted in the round before", drivertest.Latching}
	LatchGoesBelowZero = Defect{"a latch counts below zero", drivertest.Latching}
	LatchIsSilent      = Defect{"a latch that comes to zero tells nobody", drivertest.Latching}
)

// The defects of semaphores that are resized.
var (
	ResizeWakesNobody = Defect{"a larger limit lets no waiter in", drivertest.Sharing}
	ResizeLocksOut    = Defect{"a limit is made smaller than what somebody waits for", drivertest.Sharing}
)

// The defects of holds that are adopted.
var (
	AdoptionKeepsGiver = Defect{"who has given a hold away can renew it", drivertest.Adopting}
	AdoptionKeepsToken = Defect{"a hold that is adopted keeps its token", drivertest.Adopting}
	AdoptionIsSilent   = Defect{"an adoption is not told to the former holder", drivertest.Adopting}
)

// The defects of conditions.
var (
	CondKeepsLock      = Defect{"a wait for a signal keeps the lock", drivertest.Conditions}
	SignalWakesAll     = Defect{"a signal wakes all", drivertest.Conditions}
	SignalIsKept       = Defect{"a signal with nobody waiting is kept for the next one", drivertest.Conditions}
	SignalCountsTwice  = Defect{"a signal asked again wakes another", drivertest.Conditions}
	SignalIsLost       = Defect{"a signal is lost with a waiter that gives up", drivertest.Conditions}
	CondIgnoresNesting = Defect{"a wait gives one of two holds up", drivertest.Conditions}
	DeadTakeSignals    = Defect{"a signal is lost with a dead client", drivertest.Conditions}
	WokenOvertake      = Defect{"a woken waiter goes before the waiters for the lock", drivertest.Conditions}
)

func synchronizers() []Defect {
	return []Defect{
		LookFindsLonger, ValueOfTheFirst, WatchMissesEnds,
		LatchCountsTwice, LatchSetTwice, LatchSetAnew, LatchForgetsRounds, LatchGoesBelowZero, LatchIsSilent,
		AdoptionKeepsGiver, AdoptionKeepsToken, AdoptionIsSilent,
		ResizeWakesNobody, ResizeLocksOut,
		CondKeepsLock, SignalWakesAll, SignalIsKept, SignalCountsTwice, SignalIsLost, CondIgnoresNesting,
		DeadTakeSignals, WokenOvertake,
	}
}
