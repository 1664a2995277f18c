// Flags that are durations. All commands use them. time.ParseDuration alone would refuse "5", which is what sleep(1),
// timeout(1) and flock(1) take.

package main

import (
	"errors"
	"strings"
	"time"
)

// durationFlag is the value of a flag that is a time span: as Go writes it, such as 1m30s, or a plain number of
// seconds, as sleep and flock take it.
//
// A plain number means seconds here. In Go it would be nanoseconds.
type durationFlag time.Duration

// durationOf makes p the value of a flag, with a default.
func durationOf(p *time.Duration, otherwise time.Duration) *durationFlag {
	*p = otherwise
	return (*durationFlag)(p)
}

// Set accepts both ways to write a duration. A value that has only the characters of a number is one, in seconds.
//
// Exponents, hexadecimal numbers, inf and nan are refused: they are no way to write a time for people.
func (d *durationFlag) Set(s string) error {
	if strings.Trim(s, "+-.0123456789") == "" {
		s += "s"
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("must be a duration such as 500ms or 1m30s, or a number of seconds such as 5 or 0.5")
	}
	*d = durationFlag(parsed)
	return nil
}

// String shows a zero as 0, which the help leaves out. Of a type that it does not know, pflag takes "0" for no default,
// and "0s" for one.
func (d *durationFlag) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// Type names the value in help texts.
func (d *durationFlag) Type() string { return "duration" }

// checkInterval refuses a pause between two looks that is zero or negative: the command would ask without end.
func checkInterval(interval time.Duration) error {
	if interval <= 0 {
		return usage("--interval %v must be positive", interval)
	}
	return nil
}
