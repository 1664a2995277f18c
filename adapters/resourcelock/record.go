package resourcelock

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rl "k8s.io/client-go/tools/leaderelection/resourcelock"
)

// record is what the leader's value in the engine says: what of client-go's record stays the same for a term. Names are
// those of client-go, for people who look at the election with other tools.
type record struct {
	HolderIdentity       string      `json:"holderIdentity"`
	LeaseDurationSeconds int         `json:"leaseDurationSeconds"`
	AcquireTime          metav1.Time `json:"acquireTime"`
	LeaderTransitions    int         `json:"leaderTransitions"`
}

// encode returns the value to campaign with.
func encode(r *rl.LeaderElectionRecord) (string, error) {
	text, err := json.Marshal(record{r.HolderIdentity, r.LeaseDurationSeconds, r.AcquireTime, r.LeaderTransitions})
	return string(text), err
}

// decode returns the record of a leader as the engine tells it at now. One that has campaigned without this package,
// with a value of another form, leads as well: its value, or its client's name, is its identity.
func decode(leader interlock.Leader, now time.Time) *rl.LeaderElectionRecord {
	var r record
	if json.Unmarshal([]byte(leader.Value), &r) != nil || r.HolderIdentity == "" {
		r = record{HolderIdentity: leader.Value}
	}
	if r.HolderIdentity == "" {
		r.HolderIdentity = fmt.Sprintf("%s (token %d)", leader.Client, leader.Token)
	}
	return &rl.LeaderElectionRecord{
		HolderIdentity: r.HolderIdentity,
		// For at least a second nobody need ask the engine again.
		LeaseDurationSeconds: max(r.LeaseDurationSeconds, 1),
		AcquireTime:          r.AcquireTime,
		RenewTime:            metav1.NewTime(now),
		LeaderTransitions:    r.LeaderTransitions,
	}
}

// checkIdentity refuses an identity whose records would be longer than a leader's value may be, whatever else they say.
func checkIdentity(identity string) error {
	if identity == "" {
		return errors.New("resourcelock: New: the identity is empty: give one that no other candidate has, such as " +
			"the host's name and a random text")
	}
	longest := &rl.LeaderElectionRecord{
		HolderIdentity: identity, LeaseDurationSeconds: 1e9, LeaderTransitions: 1e9,
		AcquireTime: metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), // JSON has whole seconds, in UTC
	}
	value, err := encode(longest)
	if err != nil {
		return fmt.Errorf("resourcelock: New: the identity %q: %w", identity, err)
	}
	if over := len(value) - interlock.MaxElectionValue; over > 0 {
		return fmt.Errorf("resourcelock: New: the identity %q is %d bytes too long: it has at most %d bytes, fewer if "+
			"JSON escapes some", identity, over, interlock.MaxElectionValue-(len(value)-len(identity)))
	}
	return nil
}
