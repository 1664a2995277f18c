// interlock lab, torture and bench: programs of their own that this one finds and becomes. They test and measure
// engines, and each needs modules that the command does not.

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// toolCommands are programs of their own, because what only they need should not be in everybody's binary.
func (a *app) toolCommands() []*cobra.Command {
	return []*cobra.Command{
		a.toolCommand("lab", "Show how flawed locks fail"),
		a.toolCommand("torture", "Test an engine under faults"),
		a.toolCommand("bench", "Measure engines"),
	}
}

// howToGetTools is what installs them. Their modules are never tagged, so that "go install" cannot.
const howToGetTools = `  git clone https://github.com/interlock-go/interlock && cd interlock && make tools
  bin/interlock %s`

// toolCommand describes one of them. It replaces this process by the program, so that nothing stands between the caller
// and its signals and exit code.
//
// Without exec this process would have to forward signals and the terminal, as run does for a job.
func (a *app) toolCommand(name, about string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [ARG...]",
		Short: about,
		Long: about + ". This starts the program interlock-" + name +
			", which a clone of the repository builds:\n\n" + fmt.Sprintf(howToGetTools, name),
		GroupID:            "tools",
		DisableFlagParsing: true, // all arguments are the program's
		RunE: func(_ *cobra.Command, args []string) error {
			program := "interlock-" + name
			// 127 and 126 as for a job: the program is not there, or cannot be executed.
			path, err := findTool(program)
			if err != nil {
				return exitWith(exitNotFound, fmt.Errorf("the program %s is neither beside interlock nor on PATH; it "+
					"is not installed with interlock, but built by: "+
					"git clone https://github.com/interlock-go/interlock && cd interlock && make tools; then run "+
					"bin/interlock %s", program, name))
			}
			// Exec returns only if it fails.
			return exitWith(exitNotExecutable, fmt.Errorf("%s: %w", path,
				syscall.Exec(path, append([]string{program}, args...), os.Environ())))
		},
	}
}

// findTool looks beside our own binary first, so that the versions fit, and then along PATH.
//
// ErrDot is no reason to refuse: somebody whose PATH has the current folder wants it so.
func findTool(program string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), program)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}
