package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
)

// made makes the cell's run. If histories are kept it has a folder of its own there; and if that is of a run
// which has ended, this is judged and not made again, so that an hour of runs can be interrupted, and judged anew
// when a check was mended.
func (c *cell) made(ctx context.Context, out io.Writer, keep string) (*check.Report, error) {
	conf := *c.Config // a run changes it
	if keep == "" {
		return torture(ctx, out, &conf)
	}
	conf.Dir = filepath.Join(keep, fmt.Sprintf("%s-%s-%d", c.Target.Name, c.fault, c.Seed))
	var verdicts bytes.Buffer
	rep, err := judge(&verdicts, conf.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is new, or was interrupted
		if err := os.RemoveAll(conf.Dir); err != nil {
			return nil, err
		}
		return torture(ctx, out, &conf)
	case rep == nil:
		return nil, err
	case !isOf(&rep.About, &conf):
		return nil, fmt.Errorf("%s is of a run with other settings: choose another folder", conf.Dir)
	}
	fmt.Fprintf(out, "%s under %v, seed %d, as it was recorded in %s\n%s",
		c.Target.Name, c.Faults, c.Seed, conf.Dir, &verdicts)
	return rep, err
}

// isOf reports whether a run was made with these settings.
func isOf(about *run.About, c *run.Config) bool {
	want := *c
	want.Engine = c.Target.Name
	if about.Long { // then it has as many names as there are goroutines, and lasts as long as holds do
		want.Names, want.Duration = about.Names, about.Duration
	}
	a, errA := json.Marshal(&about.Config)
	b, errB := json.Marshal(&want)
	return errA == nil && errB == nil && bytes.Equal(a, b) && about.Lease == c.LeaseTime()
}
