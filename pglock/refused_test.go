package pglock

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// A server that refuses the token has not given the lock, and says why.
func TestLock_WhoseTokenTheServerRefuses_SaysWhyAndTakesNothing(t *testing.T) {
	n := sharedServer(t)
	a, table := newAdmin(t, n), ownTable()
	c := client(t, n.Addr(), "&table="+table, testTimeout)
	if err := lock(t, c, "x").Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for state, hint := range map[string]string{
		stateDiskFull: "free space", stateNoRight: "rights that locking needs",
		stateReadOnly: "name the primary",
	} {
		a.query(`CREATE OR REPLACE FUNCTION refuse_%[1]s() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '%[2]s'; END $$ LANGUAGE plpgsql;
			CREATE OR REPLACE TRIGGER refuse BEFORE INSERT OR UPDATE ON %[1]s FOR EACH STATEMENT EXECUTE FUNCTION refuse_%[1]s()`, table, state)
		_, err := c.TryLock(t.Context(), "y")
		refused := driver.Refusal(err)
		if refused == nil || !strings.Contains(refused.Hint, hint) || strings.Count(err.Error(), hint) != 1 ||
			strings.Contains(err.Error(), "did not answer") {
			t.Errorf("%s: %v, want a refusal that says once %q", state, err, hint)
		}
		a.query(`DROP TRIGGER refuse ON %s`, table)
		if err := lock(t, c, "y").Unlock(t.Context()); err != nil {
			t.Errorf("after %s: %v", state, err)
		}
	}
}
