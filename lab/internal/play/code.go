package play

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// exhibits is in the name of every function of an exhibit.
const exhibits = "/lab/exhibit/"

// exhibitLines returns the lines of the exhibit that are about to send a command, each as directory/file:line: first
// the one that sends it, then its callers. There are none when the command is the experiment's own. The exhibits need
// not know that they are shown: the stack tells.
func exhibitLines() []string {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	var all []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, exhibits) {
			dir, file := filepath.Split(f.File)
			all = append(all, filepath.Base(dir)+"/"+file+":"+strconv.Itoa(f.Line))
		}
	}
	return all
}

// reached writes down where a client is in its exhibit; no lines are nowhere.
func (p *Play) reached(who string, lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(lines) == 0 {
		delete(p.code, who)
		return
	}
	p.code[who] = lines
}
