package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
)

// answered is a server's answer, as a library hands it on.
type answered string

func (a answered) Error() string { return string(a) }

var errPool = errors.New("the library has no connection to send it over")

var library = Library{
	Answer: func(err error) (string, bool) {
		var a answered
		is := errors.As(err, &a)
		return string(a), is
	},
	Failure: func(err error) Verdict {
		if errors.Is(err, errPool) {
			return Refused
		}
		return Unknown
	},
}

func TestJudge_OfAnAnswer_KnowsWhatHasNotRun(t *testing.T) {
	const inside = " script: 0123, on @user_script:1."
	for message, want := range map[string]Judgement{
		"NOSCRIPT No matching script. Please use EVAL.":                 {Verdict: NoScript},
		"LOADING Redis is loading the dataset in memory":                {Verdict: Later},
		"TRYAGAIN Multiple keys request during rehashing of slot":       {Verdict: Later},
		"CLUSTERDOWN The cluster is down":                               {Verdict: Later},
		"MASTERDOWN Link with MASTER is down":                           {Verdict: Later},
		"BUSY Redis is busy running a script.":                          {Verdict: Later},
		"ERR max number of clients reached":                             {Verdict: Later},
		"max number of clients reached":                                 {Verdict: Later}, // rueidis leaves ERR out
		"ERR max number of clients + cluster connections reached":       {Verdict: Later},
		"NOAUTH Authentication required.":                               {Verdict: Refused},
		"WRONGPASS invalid username-password pair":                      {Verdict: Refused},
		"DENIED Redis is running in protected mode":                     {Verdict: Refused},
		"NOPERM this user has no permissions to run 'evalsha'":          {Verdict: Refused},
		"NOPERM this user has no permissions to run 'publish'" + inside: {Verdict: Unknown},
		"CLUSTERDOWN The cluster is down" + inside:                      {Verdict: Unknown},
		"READONLY You can't write against a read only replica.":         {Verdict: Elsewhere},
		"READONLY You can't write against a read only replica" + inside: {Verdict: Elsewhere},
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't": {
			Verdict: Elsewhere,
		},
		"OOM command not allowed when used memory > 'maxmemory'." + inside: {Verdict: Unknown},
		"ERR wrong number of arguments":                                    {Verdict: Unknown},
		"ALONE the bundle was not run":                                     {Verdict: ByItself},
		"MOVED 3999 10.0.0.7:6381":                                         {Verdict: Moved, Addr: "10.0.0.7:6381"},
		"MOVED 3999 redis.example:6381": {
			Verdict: Moved, Addr: "redis.example:6381",
		},
		"MOVED 3999 :6381":              {Verdict: Moved, Addr: "10.0.0.1:6381"},
		"MOVED 3999 2001:db8::7:6381":   {Verdict: Moved, Addr: "[2001:db8::7]:6381"},
		"MOVED 3999 [2001:db8::7]:6381": {Verdict: Moved, Addr: "[2001:db8::7]:6381"},
		"ASK 3999 10.0.0.7:6381":        {Verdict: Asked, Addr: "10.0.0.7:6381"},
		"MOVED 3999 ?:6381":             {Verdict: Refused},
		"MOVED":                         {Verdict: Refused},
		"MOVED 3999 nonsense":           {Verdict: Refused},
	} {
		want.Answered = true
		for _, err := range []error{answered(message), fmt.Errorf("by a hook: %w", answered(message))} {
			if got := library.Judge(err, "10.0.0.1:6379"); got != want {
				t.Errorf("%s: %+v, want %+v", message, got, want)
			}
		}
	}
	if got := library.Judge(answered("MOVED 3999 10.0.0.7:6381"), ""); got.Verdict != Refused {
		t.Errorf("MOVED where there is no Cluster: %+v", got)
	}
}

func TestJudge_OfAFailure_KnowsWhatWasNotSent(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, row := range []struct {
		err  error
		want Verdict
	}{
		{dial, Unreached},
		{fmt.Errorf("wrapped: %w", dial), Unreached},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Unknown},
		{&RefusedError{context.Canceled}, Refused},
		{&RefusedError{dial}, Refused},
		{context.Canceled, Unknown},
		{errPool, Refused},
		{ErrUnsent, Unsent},
		{ErrReplica, Later},
		{ErrNoOwner, Later},
		{ErrStranger, Later},
		{AsRefused(ErrClusterNode), Refused},
	} {
		if got := library.Judge(row.err, ""); got != (Judgement{Verdict: row.want}) {
			t.Errorf("%v: %+v, want %v", row.err, got, row.want)
		}
	}
}
