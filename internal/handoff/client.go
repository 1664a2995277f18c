package handoff

import "fmt"

// maxClients is how many clients fit into a state. A model may use fewer.
const maxClients = 3

// phase is what a client does about its present request.
type phase uint8

const (
	idle     phase = iota
	asking         // sent at least one acquire, has no grant
	queuing        // inside a process: waits for a hold of the same process to be passed on
	inside         // believes to hold the lock, until its trust ends
	retained       // nobody holds the lock, and the client keeps the grant for its next owner
	lost           // the trust ended, and what may be left in the engine is being given back
	leaving        // released or cancelled, not confirmed yet
	done           // has no further requests
	crashed        // does nothing any more
)

var phaseNames = [...]string{
	idle: "idle", asking: "asking", queuing: "waiting inside its process", inside: "inside",
	retained: "retained", lost: "told that the lock is lost", leaving: "leaving, unconfirmed", done: "done",
	crashed: "crashed",
}

// String says it in words.
func (p phase) String() string { return phaseNames[p] }

// action is the sort of an event.
type action uint8

const (
	doStart action = iota
	doAskAgain
	doCancel
	doRenew
	doUnlock
	doPass
	doReleaseAgain
	doCrash
	doLose
	doDeliver
	doTick
	doGrant     // tokens
	doReplicate // tokens
	doFailover  // tokens
	doRetain    // retains
	doTakeOver  // retains
	doShorten   // retains
	doGiveBack  // retains
)

// sentences tell the actions; %s is who acts.
var sentences = [...]string{
	doStart:        "%s calls Lock",
	doAskAgain:     "%s sends its acquire again (heartbeat, claim or retry)",
	doCancel:       "%s cancels its wait",
	doRenew:        "%s sends a renewal",
	doUnlock:       "%s calls Unlock",
	doPass:         "%s calls Unlock, which passes the hold on inside the process",
	doReleaseAgain: "%s sends its release again",
	doCrash:        "%s crashes",
	doRetain:       "%s calls Unlock, and its client keeps the grant",
	doTakeOver:     "another owner calls Lock and takes %s over",
	doShorten:      "%s sends a renewal marked as retained",
	doGiveBack:     "%s gives its retained grant back",
}

// tell puts the steps that all models share into words.
func tell(e Event, who string, name func(uint8) string) string {
	switch e.What {
	case doTick:
		return "a tick passes"
	case doLose:
		return e.Msg.tell(name) + " gets lost"
	case doDeliver:
		return e.Msg.tell(name) + " arrives"
	}
	return fmt.Sprintf(sentences[e.What], who)
}

// remaining returns whole less the used ticks, and not less than 0.
func remaining(whole, used uint8) uint8 {
	if used >= whole {
		return 0
	}
	return whole - used
}

// tickDown lets one tick of each clock pass.
func tickDown(clocks []uint8) {
	for i, left := range clocks {
		clocks[i] = remaining(left, 1)
	}
}
