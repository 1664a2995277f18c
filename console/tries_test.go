package console

import "testing"

// A try that is judged keeps out those that come meanwhile. Otherwise all guesses sent at once would be judged before
// the first of them counted as wrong.
func TestTries_JudgeOneAtATime(t *testing.T) {
	all := tries{last: make(map[string]failure)}
	asked := 0
	wait := all.judge("10.0.0.1", func() bool {
		if asked++; all.mu.TryLock() {
			all.mu.Unlock()
			t.Error("another try could be judged at the same time")
		}
		return false
	})
	if wait != 0 || asked != 1 {
		t.Errorf("the first try waits %v and was judged %d times", wait, asked)
	}
	if wait := all.judge("10.0.0.1", func() bool { asked++; return true }); wait <= 0 || asked != 1 {
		t.Errorf("the next try waits %v and was judged %d times in all; want a wait and 1", wait, asked)
	}
}
