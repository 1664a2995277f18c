// The invocation: from the command line to a command, and from its error to the exit code. Tests call run, as main
// does. Each command's own file has its flags and its work; exit.go and report.go say how it ended. "interlock lab",
// torture and bench are programs of their own that this one finds and becomes: each needs modules that the command
// does not.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// main only hands over what belongs to the process, so that tests can call run with streams and an environment of their
// own, many times at once.
func main() {
	if os.Args[0] == keeperName {
		keep(os.NewFile(keeperPipe, "pipe"), os.Stderr)
		return
	}
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	a.process = true
	os.Exit(a.run(context.Background(), os.Args[1:]))
}

// app is one invocation of the command: its streams, its environment and the flags that all commands share. Tests run
// many of them in one process.
//
// It is the receiver of every command. A command's own flags are variables of the function that describes it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	// Once, because the file may be a pipe, which gives what it has a single time.
	urlOfFile func() (string, error) // reads the file named by INTERLOCK_URL_FILE, once

	// These three are written by the flags, before the work of any command begins.
	url     string        // of --url, or ""
	output  format        // of --output
	timeout time.Duration // of --timeout, for each exchange with the engine

	// tellsChecks says that the findings of engines at their start are worth a warning. It is set by --verbose of
	// commands that take locks; elsewhere the findings would be noise, and doctor prints them anyway.
	tellsChecks bool

	// process says that this app is the whole process, and not one of several in a test: all its children are the
	// job's.
	process bool

	saying sync.Mutex // held for each line on stderr, because engines warn in goroutines of their own; guards stderr
}

// defaultTimeout bounds each exchange with the engine, never the wait for a lock. An engine that has not answered by
// then is taken to be out of reach.
const defaultTimeout = 10 * time.Second

// run is the whole command: it parses the arguments, runs the command that they name, prints its error if there is one,
// and returns the exit code. It blocks until the command is done.
//
// It takes the streams and the environment as arguments and returns the code, where os.Exit and os.Getenv would tie
// each test to a process of its own.
func run(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string,
) int {
	return newApp(stdin, stdout, stderr, getenv).run(ctx, args)
}

// newApp returns an invocation that has not begun.
func newApp(stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) *app {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv, output: text}
	a.urlOfFile = sync.OnceValues(func() (string, error) { return readURL(getenv(urlFileVariable), a.say) })
	return a
}

// run is the function of that name on this app.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.rootCommand()
	refuseOtherShells(root)
	root.SetArgs(append([]string{}, args...)) // never nil: cobra would take os.Args
	root.SetIn(a.stdin)
	help := &checked{w: a.stdout} // cobra prints its help without a look at the error
	root.SetOut(help)
	root.SetErr(a.stderr)
	// With an error cmd is the command that failed, whose usage line finish prints.
	cmd, err := root.ExecuteContextC(ctx)
	err = cmp.Or(err, help.err)
	code := a.finish(cmd, err)
	if code != exitOK && evaluates(cmd, args) {
		_, _ = io.WriteString(a.stdout, unsetLine(code)) // if it cannot be written, there is another failure to tell
	}
	return code
}

// checked is a writer that keeps its first error.
type checked struct {
	w   io.Writer
	err error
}

// Write writes as w does.
func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.err = cmp.Or(c.err, err)
	return n, err
}

// rootCommand builds the tree of commands. It is built anew for each invocation, because the flags write into a.
//
// Cobra is the parser because its help and completion look as users of kubectl and gh know them (docs/rationale.md, The
// parser). Its own messages are off: finish prints all errors.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "interlock COMMAND",
		Short: "Run jobs under a distributed lock",
		Long: `Run jobs under a distributed lock, and show, watch and break locks.

  interlock run nightly -- ./backup.sh

waits until the lock "nightly" is free, holds it while the job runs, and releases it. Without
--url and INTERLOCK_URL, locks are files in the user's state folder, and no server is needed.`,
		Version: readVersion().Version,
		Args:    cobra.ArbitraryArgs,
		RunE:    a.runRoot,
		// Cobra would append "[flags]" to each usage line, which says nothing.
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true, // finish prints errors, in the format that was asked for
		SilenceUsage:               true, // usage text is only for usage errors; see finish
	}
	root.SetVersionTemplate("interlock {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	a.addGlobalFlags(root)
	a.addCommands(root)
	root.SetHelpCommand(helpCommand())
	return root
}

// refuseOtherShells makes of completion for an unknown shell wrong use. Cobra prints its help then, as if all was well.
func refuseOtherShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("there is no completion for %q; there is for bash, fish, powershell and zsh", args[0])
			}
			return cmd.Help()
		}
	}
}

// addGlobalFlags gives root the flags that every command has. They may stand before the command and after it. --timeout
// is not the one of flock(1), where it means the wait for the lock; that is --wait here (docs/flock.md).
func (a *app) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.Var((*urlFlag)(&a.url), "url", "engine, such as redis://host:6379; see \"interlock help engines\" (default "+
		"$INTERLOCK_URL or $INTERLOCK_URL_FILE, else files in the user's state folder)")
	flags.VarP(&a.output, "output", "o", "format of results and errors: text or json")
	flags.Var(durationOf(&a.timeout, defaultTimeout), "timeout",
		"maximum time for one answer of the engine; does not limit the wait for a lock")
	completeFlag(root, "output", string(text), string(asJSON))
	if err := root.RegisterFlagCompletionFunc("url", completeURL); err != nil {
		panic(err) // as in completeFlag
	}
}

// addCommands gives root its commands and topics. The groups are the order of the help: what a newcomer looks for
// first, then what an operator does, and last what is not installed with interlock.
func (a *app) addCommands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: "jobs", Title: "Jobs and scripts:"},
		&cobra.Group{ID: "look", Title: "Inspection and repair:"},
		&cobra.Group{ID: "tools", Title: "Separate programs, not installed with interlock (each says how to get " +
			"it):"})
	root.AddCommand(a.runCommand(), a.semCommand(), a.electCommand(), a.acquireCommand(), a.renewCommand(),
		a.releaseCommand())
	root.AddCommand(a.lsCommand(), a.getCommand(), a.topCommand(), a.watchCommand(), a.graphCommand(), a.breakCommand(),
		a.doctorCommand(), a.consoleCommand(), a.serveCommand())
	root.AddCommand(a.versionCommand(), a.manCommand(), exitCodesTopic(), environmentTopic(), enginesTopic())
	root.AddCommand(a.toolCommands()...)
}

// runRoot is reached without a command, or with an unknown one. Cobra would also accept arguments here. Without
// arguments the help is the answer, so the exit code is 0.
func (a *app) runRoot(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	// The nearest command is named, because most unknown ones are mistyped.
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", near[0])
	}
	return usage("unknown command %q%s", args[0], hint)
}

// helpCommand is cobra's, except that an unknown topic is an error and not the general help. Cobra's prints the general
// help to stdout and ends with 0, so a script that misspells a topic would not notice.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND or TOPIC]",
		Short: "Help about a command or a topic",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				return usage("there is no help about %q", args[len(args)-1])
			}
			// Cobra adds these flags when it parses a command line of found, and here it has parsed one of help. A tool
			// gets --help like every argument, so interlock has no such flag for it.
			if !found.DisableFlagParsing {
				found.InitDefaultHelpFlag()
				found.InitDefaultVersionFlag()
			}
			return found.Help()
		},
		ValidArgsFunction: completeTopics,
	}
}

// completeTopics offers the commands and topics that help knows.
func completeTopics(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	above, _, err := cmd.Root().Find(args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range above.Commands() {
		if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			names = append(names, c.Name()+"\t"+c.Short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// within bounds one exchange with the engine by --timeout. The cause of its end says so, which explained adds to
// errors.
//
// The cause tells our own limit from the deadline of a caller. Both are context.DeadlineExceeded, and --timeout changes
// only one of them.
func (a *app) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.timeout, fmt.Errorf("no answer within %v (--timeout)", a.timeout))
}

// explained adds to err that it was our own time limit that ended ctx, and which flag changes it. An error of another
// deadline stays as it is.
func explained(ctx context.Context, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
		return err
	}
	if why := context.Cause(ctx); !errors.Is(why, ctx.Err()) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// say writes a message for people to stderr, as one line. It may be called from any goroutine. Without the mutex a
// warning of an engine could stand in the middle of another line.
func (a *app) say(form string, args ...any) {
	a.saying.Lock()
	defer a.saying.Unlock()
	fmt.Fprintf(a.stderr, "interlock: "+form+"\n", args...)
}

// divert sends messages for people to w until the function that it returns is called. The screen of top does so, which
// a line in between would spoil.
//
// The messages are not lost: top shows the last one in its last line.
func (a *app) divert(w io.Writer) (back func()) {
	a.saying.Lock()
	defer a.saying.Unlock()
	before := a.stderr
	a.stderr = w
	return func() {
		a.saying.Lock()
		defer a.saying.Unlock()
		a.stderr = before
	}
}

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
