// Package packaging tests what scripts/package.sh makes, and the examples in the folder packaging, with the programs
// that read them.
package packaging

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
)

const top = "../.."

// need skips the test where a program is missing, or fails it where nothing may be skipped.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if servers.Required("all", program) {
			t.Fatalf("%s is not installed, and INTERLOCK_REQUIRE names it", program)
		}
		t.Skipf("%s is not installed", program)
	}
}

// sh runs a script of shell with arguments and returns what it printed.
func sh(t *testing.T, script string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // the first may compile
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-euc", script, "bash"}, args...)...)
	cmd.Env = append(os.Environ(), "INTERLOCK_URL=", "INTERLOCK_URL_FILE=", "SOURCE_DATE_EPOCH=1790000000", "TERM=dumb")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, said.Bytes())
	}
	return string(out)
}

// binary is a light command: it compiles in a moment, and says the same as the full one but for its engines.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "interlock-packaging-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "interlock")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", file, "./cmd/interlock")
	cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &fs.PathError{Op: string(out), Path: file, Err: err}
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if file, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

func command(t *testing.T) string {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pack makes a package of the binary, and returns the folder with what there is.
func pack(t *testing.T, version string) string {
	t.Helper()
	need(t, "dpkg-deb")
	dist := t.TempDir()
	sh(t, `"$1"/scripts/package.sh "$2" "$3" "$(go env GOHOSTARCH)" "$4"`, top, dist, version, command(t))
	return dist
}

func TestDeb_IsTheSameEveryTime(t *testing.T) {
	longrun.Only(t)
	t.Parallel()
	sh(t, `cmp "$1"/*.deb "$2"/*.deb && cmp "$1"/interlock.1 "$2"/interlock.1`, pack(t, "v1.2.3"), pack(t, "1.2.3"))
}

func TestDeb_InstallsACommandThatRuns(t *testing.T) {
	longrun.Only(t) // it builds a release
	t.Parallel()
	dist, root := pack(t, "v1.2.3-rc.1"), t.TempDir()
	fields := sh(t, `dpkg-deb -x "$1"/*.deb "$2" && dpkg-deb -f "$1"/*.deb Package Version`, dist, root)
	if want := "Package: interlock\nVersion: 1.2.3~rc.1\n"; fields != want {
		t.Errorf("the package says %q, want %q", fields, want)
	}
	// All of it belongs to root, whoever made it.
	if strange := sh(t, `dpkg-deb -c "$1"/*.deb | grep -v ' root/root ' || true`, dist); strange != "" {
		t.Errorf("not root's:\n%s", strange)
	}
	got := sh(t, `HOME=$2 "$1"/usr/bin/interlock run nightly -- sh -c 'echo "$INTERLOCK_NAME"'`, root, t.TempDir())
	if got != "nightly\n" {
		t.Errorf("the job printed %q", got)
	}
	sh(t, `cd "$1" && gunzip -c usr/share/doc/interlock/LICENSES.gz | grep -q 'github.com/spf13/cobra' &&
		test -s usr/share/doc/interlock/examples/systemd/interlock-job.timer &&
		test -s usr/share/zsh/vendor-completions/_interlock &&
		test -s usr/share/fish/vendor_completions.d/interlock.fish`, root)
	if _, err := exec.LookPath("man"); err == nil {
		if page := sh(t, `man -l "$1"/usr/share/man/man1/interlock.1.gz`, root); !strings.Contains(page, "kill-grace") {
			t.Error("the manual page does not show the flags of run")
		}
	}
	if _, err := exec.LookPath("lintian"); err == nil {
		// The binary is not linked with libc, and no request for packaging is closed by this version.
		sh(t, `lintian --allow-root --fail-on error,warning --suppress-tags \
			statically-linked-binary,initial-upload-closes-no-bugs,unstripped-binary-or-object "$1"/*.deb`, dist)
	}
}

// TestCompletion_AnswersInBash loads the file as bash does, and presses TAB by calling its function.
func TestCompletion_AnswersInBash(t *testing.T) {
	t.Parallel()
	need(t, "bash")
	helpers := "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(helpers); err != nil {
		t.Skip("bash-completion is not installed")
	}
	const tab = `set +eu; PATH=$(dirname "$1"):$PATH; . "$2"; . <(interlock completion bash)
		COMP_WORDS=(interlock "${@:3}"); COMP_CWORD=$(($# - 2)); COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
		COMP_TYPE=9; __start_interlock; printf '%s\n' "${COMPREPLY[@]}"`
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"elec"}, "elect"},
		{[]string{"run", "--kill-g"}, "--kill-grace"},
		{[]string{"run", "--on-lost", "ig"}, "ignore"},
	} {
		got := sh(t, tab, append([]string{command(t), helpers}, c.words...)...)
		if !slices.Contains(strings.Fields(got), c.want) {
			t.Errorf("after %q bash offers %q, want %q", c.words, got, c.want)
		}
	}
}

func TestUnits_AreWhatSystemdTakes(t *testing.T) {
	t.Parallel()
	need(t, "systemd-analyze")
	// The commands of the examples are not installed here. What the test compares is everything else.
	// A value that cannot be read is a warning only, so whatever is said of our units fails.
	said := sh(t, `cp "$1"/packaging/systemd/* "$2"; sed -i "s,/usr/bin/interlock,$3," "$2"/*.service
		systemd-analyze verify --man=no "$2"/*.service "$2"/*.timer 2>&1`, top, t.TempDir(), command(t))
	if strings.Contains(said, "interlock-") {
		t.Error(said)
	}
}

// interlock's own flags in the examples must be flags that there are: help after them says so, and runs nothing.
func TestExamples_UseFlagsThatThereAre(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob(top + "/packaging/systemd/*.service")
	if err != nil || len(units) == 0 {
		t.Fatal("there are no units", err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line, is := strings.CutPrefix(line, "ExecStart=/usr/bin/interlock "); is {
				ours, _, _ := strings.Cut(strings.TrimSpace(line), " -- ")
				sh(t, `"$@" --help`, append([]string{command(t)}, strings.Fields(ours)...)...)
			}
		}
	}
}

// TestDockerfile_BuildsTheReleasesBinary: no test has docker, so what is held is that the image has the binary of
// scripts/package.sh, certificates, and a user that Kubernetes can tell from root.
func TestDockerfile_BuildsTheReleasesBinary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(top + "/packaging/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(top + "/scripts/package.sh")
	if err != nil {
		t.Fatal(err)
	}
	const flags = "CGO_ENABLED=0 go build -tags full -trimpath -ldflags="
	if !bytes.Contains(script, []byte(flags)) {
		t.Errorf("scripts/package.sh does not build with %q", flags)
	}
	_, last, _ := strings.Cut(string(text), "\nFROM scratch\n")
	for _, want := range []string{
		"COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt\n",
		"COPY --from=build /out/interlock /interlock\n", "USER 65532:65532\n", "ENTRYPOINT [\"/interlock\"]\n",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("the last stage has no line %q", want)
		}
	}
	if !bytes.Contains(text, []byte("RUN "+flags)) {
		t.Errorf("the image is not built with %q", flags)
	}
}
