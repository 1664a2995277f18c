package check

import (
	"testing"

	"github.com/interlock-go/interlock/torture/register"
)

// Readers keep no older reader away, and a writer that goes on as a reader sees what it wrote.
func TestReadersPassTheFence_BesideEachOther(t *testing.T) {
	s := sound()
	e := register.Entry{Name: "a", Nonce: "n", Fenced: true, Shared: true, Before: 2, Value: 2}
	for _, token := range []uint64{104, 103} {
		e.Token = token
		s.log = append(s.log, e)
	}
	e.Token, e.Shared, e.Write, e.Value = 105, false, true, 3
	s.log = append(s.log, e)
	e.Shared, e.Write, e.Before = true, false, 3
	s.log = append(s.log, e)
	if v := s.judge(t).Find("K2"); !v.OK() || v.Of != 8 {
		t.Error(v)
	}
}
