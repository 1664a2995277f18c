// Help: its topics, which are exit codes, environment and engines, and the manual page, which is made of the help
// texts. Packages install what "interlock man" prints. cobra/doc was refused: it brings a Markdown parser and YAML
// into the light build, writes thirty pages, and dates them (docs/rationale.md, Packages).

package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// exitCodesText is the table of the package documentation, for people who read help instead. A test compares the codes.
//
// It is part of the help of run and sem, where scripts are written; the manual page has it once and refers to it
// (help.go). A refusal has 69 too, and no code of its own; -o json tells the two apart.
const exitCodesText = `Exit codes of interlock:

  0-63   run and sem: the job's own. Other commands: 0 is success; 1 means
         "there is no such lock", or that break was answered no. doctor:
         0 ok, 1 warnings, 2 failures
  64     wrong use: a flag, an argument, a URL, another limit than the one
         in use, or something that this engine cannot do
  69     the engine cannot be reached, does not answer, refuses the login
         or refuses the request; -o json tells whether a retry may help
  75     another owner holds the lock, and waiting was not wanted or has
         timed out (-E sets another code, 0 included)
  79     the lock was lost while the job ran, and the job was killed for
         that (--lost-exit-code sets another); renew and release: the lock
         is gone
  125    interlock itself failed, or could not kill all of the job
  126    the job's command is not executable
  127    the job's command was not found
  128+n  signal n ended the job, or the wait for the lock

With -o json an error is one JSON object on stderr:
  {"schemaVersion":1,"code":"held","message":"...","retryable":true}
Its codes: usage, unsupported, conflict, refused, unavailable, held, lost,
not_held, not_executable, not_found, interrupted, failed.
`

// environmentText names all variables that the command reads, and those that a job gets. It is one text for run, sem
// and elect, so that their helps need not repeat it.
const environmentText = `Environment that interlock reads:

  INTERLOCK_URL      the engine, unless --url is given; an empty value
                     counts as unset. Put a password here, not into
                     arguments: everybody on the machine can list those.
  INTERLOCK_URL_FILE a file that contains only the engine's URL, used
                     instead of INTERLOCK_URL. It keeps a password out of
                     the environment. The file is read once; only its owner
                     should be able to read it.
  INTERLOCK_HANDLE   the handle that renew and release use without an
                     argument
  XDG_STATE_HOME     where the default engine keeps its files, in
                     interlock/locks (default ~/.local/state)
  NO_COLOR           if set, top uses no colours. Without TERM, or with
                     TERM=dumb, top prints one board and ends.

Environment of a job that "interlock run", "interlock sem" or "interlock
elect" starts, in addition to that of interlock:

  INTERLOCK_URL      the engine's URL without its password, also if it came
                     from a file; INTERLOCK_URL_FILE is left out. A job that
                     calls interlock needs the password again, for instance
                     from a file. A job of the same user can still find it
                     in the environment of interlock itself.
  INTERLOCK_NAME     the name of the lock
  INTERLOCK_TOKEN    the fencing token, which grows with every acquisition.
                     Let the resource refuse a token smaller than one it has
                     seen. No lock can stop a job on a machine that was
                     suspended; the resource can. (This does not work with
                     permits of a semaphore: several are held together.)
  INTERLOCK_OWNER    the owner of the lock, as operators see it. After
                     "run --owner NAME" a command inside the job re-enters
                     the lock with --owner "$INTERLOCK_OWNER", on engines
                     with named owners.
  INTERLOCK_VALUE    the leader's value, of "interlock elect"
`

// exitCodesTopic, and the two after it, are commands without work: cobra shows them as topics. Cobra lists a command
// without a function under "Additional help topics".
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What each exit code means", Long: exitCodesText}
}

// environmentTopic is the help of the variables.
func environmentTopic() *cobra.Command {
	return &cobra.Command{
		Use: "environment", Short: "Variables that interlock reads, and that jobs get",
		Long: environmentText,
	}
}

// enginesText names every scheme of engines.go and engines_full.go. A test compares it with the schemes that are
// registered, so no engine can be forgotten.
const enginesText = `Engines, as --url and INTERLOCK_URL name them:

  file:///var/lib/app/locks               files of this machine; no server
  mem://                                  memory of one command, for trials
  redis://user:password@host:6379/0       Redis, Valkey; rediss:// for TLS
  redis+sentinel://s1,s2,s3/NAME          the primary that Sentinels watch
  redis+cluster://h1,h2,h3                a Cluster of Redis or Valkey
  redlock://h1,h2,h3,h4,h5                the majority of independent Redis
  zk://user:password@h1,h2,h3/chroot      ZooKeeper
  etcd://user:password@h1,h2,h3           etcd
  mysql://user:password@host/database     MySQL, MariaDB
  postgres://user:password@host/database  PostgreSQL

User, password and port may be left out. Inside a user or password, write
the characters / ? # and % as %2F %3F %23 and %25. Other settings follow a
question mark, as in ?tls=true. An engine refuses a setting that it does not
know, and lists those that it knows.

On Redis a lock ends with its lease, so it can outlive the command that took
it, and acquire works. On files a lock ends with its process, and on
ZooKeeper, etcd, MySQL and PostgreSQL with its session; use run there.

"interlock doctor URL" checks whether an engine is set up well.

Every build of interlock has files and memory. The other engines need the
build tag full.
`

// enginesTopic adds what this build lacks. So the help of the light build says how to get the other engines.
func enginesTopic() *cobra.Command {
	return &cobra.Command{
		Use: "engines", Short: "The engines and their URLs",
		Long: strings.TrimSuffix(enginesText+"\n"+aboutMissing(), "\n"),
	}
}

// manCommand is hidden: packages install what it prints, and whoever has built interlock alone reads it by "interlock
// man | man -l -".
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page",
		Long:   "Print the manual page in roff. To read it:\n\n  interlock man | man -l -",
		Args:   noArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(a.stdout, manPage(cmd.Root()))
			return err
		},
	}
}

// manPage is interlock(1). It has neither a date nor a version, so it changes only when the help texts do, and packages
// for all processors have the same one. There is one page for all commands, so a reader searches one place.
func manPage(root *cobra.Command) string {
	var p roff
	p.line(`.TH INTERLOCK 1 "" "interlock" "User Commands"`)
	p.section("NAME")
	p.paragraph("interlock - " + strings.ToLower(root.Short[:1]) + root.Short[1:])
	p.section("SYNOPSIS")
	p.verbatim("interlock COMMAND [flags] [argument...]")
	p.section("DESCRIPTION")
	p.text(root.Long)
	p.section("COMMANDS")
	// Topics come after the flags, since they are about all commands.
	var topics []*cobra.Command
	for _, cmd := range root.Commands() { // sorted by name
		switch {
		case cmd.IsAdditionalHelpTopicCommand():
			topics = append(topics, cmd)
		case cmd.IsAvailableCommand():
			p.command(cmd)
		}
	}
	p.section("FLAGS OF ALL COMMANDS")
	p.verbatim(root.PersistentFlags().FlagUsagesWrapped(manWidth))
	for _, topic := range topics {
		p.section(strings.ToUpper(strings.ReplaceAll(topic.Name(), "-", " ")))
		p.text(topic.Long)
	}
	// flock(1) for what it replaces on one machine, systemd.timer(5) for what starts jobs on many.
	p.section("SEE ALSO")
	p.text("flock(1), systemd.timer(5), https://github.com/interlock-go/interlock")
	return p.String()
}

// manWidth is how long a line may be that man does not wrap: 80 columns less man's indent.
const manWidth = 72

// roff is text for man(7).
//
// It knows what these pages need: sections, paragraphs, and blocks that stay as they are.
type roff struct{ strings.Builder }

func (p *roff) line(s string) { p.WriteString(s + "\n") }

func (p *roff) section(title string) { p.line(".SH " + title) }

// command writes what help says about a command. Quotes in the line of .SS would end its argument.
func (p *roff) command(cmd *cobra.Command) {
	p.line(`.SS "` + escapeRoff(strings.ReplaceAll(cmd.UseLine(), `"`, `'`)) + `"`)
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	p.text(strings.Replace(long, exitCodesText, "See EXIT CODES.\n", 1)) // the page has them once
	if cmd.HasExample() {
		p.verbatim(cmd.Example)
	}
	if cmd.HasAvailableLocalFlags() {
		p.paragraph("Flags:")
		p.verbatim(cmd.LocalNonPersistentFlags().FlagUsagesWrapped(manWidth))
	}
}

// text writes a help text. Blocks with indented lines are examples and tables, so their lines stay as they are; others
// are paragraphs, which man wraps. Help texts are written for a terminal of any width, so nothing else marks what may
// be wrapped.
func (p *roff) text(s string) {
	for block := range strings.SplitSeq(strings.Trim(s, "\n"), "\n\n") {
		if strings.HasPrefix(block, " ") || strings.Contains(block, "\n ") {
			p.verbatim(block)
		} else {
			p.paragraph(block)
		}
	}
}

// paragraph is for what man may wrap.
func (p *roff) paragraph(s string) {
	p.line(".PP")
	p.escaped(s)
}

// verbatim is for what has columns: .nf keeps lines as they are.
func (p *roff) verbatim(s string) {
	p.line(".PP\n.nf")
	p.escaped(s)
	p.line(".fi")
}

// escaped writes lines of which none is a request of roff: those begin with a dot or an apostrophe.
func (p *roff) escaped(s string) {
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			p.WriteString(`\&`)
		}
		p.line(escapeRoff(line))
	}
}

// escapeRoff keeps what roff would print otherwise: backslashes, hyphens that are part of a flag, and ASCII quotes. So
// what is copied from the page works in a shell.
var escapeRoff = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`).Replace
