package etcdlock

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run in parallel than there are processors: what they do most of the time is to wait for
// sessions to end.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6") // the default then stays
	}
	os.Exit(m.Run())
}
