//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// image is a build container as an image and a careful cluster make it.
type image struct {
	name string
	// own is the user that the image itself names, user the one that the
	// cluster puts in its place.
	own, user int
	// readOnly is a root file system on which nothing can be written.
	readOnly bool
	// noTmp is an image without /tmp; takeTmp has the cluster take it away.
	noTmp, takeTmp bool
	// umask is that of the agent and of all it starts, "" for the runtime's own.
	umask string
}

// images are those with a shell. The registry may lack some of them; their
// tests are skipped then.
func images() []image {
	return []image{
		{name: "busybox"},
		{name: "busybox", user: 4001, readOnly: true, umask: "077"},
		{name: "busybox", takeTmp: true},
		{name: "debian"},
		{name: "debian", readOnly: true},
		{name: "debian", user: 4001, readOnly: true, umask: "077"},
		{name: "debian", user: 1000},
		{name: "alpine-like"},
		{name: "alpine-like", user: 4001, readOnly: true, umask: "077"},
		{name: "distroless-shell", noTmp: true},
		{name: "distroless-shell", noTmp: true, user: 4001, readOnly: true, umask: "077"},
		{name: "nonroot", own: 1000},
		{name: "nonroot-number", own: 1000, readOnly: true, umask: "077"},
	}
}

func (i image) String() string {
	text := fmt.Sprintf("%s as %d", i.name, i.uid())
	for _, part := range []struct {
		text string
		set  bool
	}{{" read-only", i.readOnly}, {" without tmp", i.noTmp || i.takeTmp}, {" umask " + i.umask, i.umask != ""}} {
		if part.set {
			text += part.text
		}
	}
	return text
}

func (i image) uid() int { return max(i.own, i.user) }

// The agent needs nothing of the image but a shell: whichever user runs the
// container, and wherever it may write, a stage's output is whole, its end
// exact, its files private, and a cancelled one is ended.
func TestStagesInAllImages(t *testing.T) {
	harden(t)
	for _, i := range images() {
		t.Run(i.String(), func(t *testing.T) {
			if !inRegistry(t, i.name) {
				t.Skipf("the local registry has no image %s", bed.Image(i.name))
			}
			j := testbed.WithoutSources(bed.Job("true"))
			j.Image.Name = bed.Image(i.name)
			h := byHand(t, j)
			h.config = i.config(t)
			defer h.do("cleanup")
			if out, code := h.do("prepare"); code != 0 {
				t.Fatalf("prepare: exit code %d, output %q", code, out)
			}
			if i.umask != "" {
				restrict(t, h, i.umask)
			}
			out, code := h.do("run", h.script(finding), "build_script")
			if want := i.finds(); code != 1 || out != want {
				t.Errorf("exit code %d, want a build failure; the output is\n%s\nwant\n%s", code, out, want)
			}
			// More than one piece of the spool.
			const many = 50_000
			pad := strings.Repeat(".", 100)
			want := strings.ReplaceAll(upTo(many), "\n", pad+"\n")
			if out, code := h.do("run", h.script(fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo $i%s; i=$((i+1)); done", many, pad)), "build_script"); code != 0 || out != want {
				t.Errorf("exit code %d, %d bytes of output, want %d", code, len(out), len(want))
			}
			cancelStage(t, h)
			// The helper has the programs to look at what the agent leaves.
			if out, code := h.do("run", h.script("find /tenant-executor/build/stages/* ! -user "+fmt.Sprint(i.uid())+" -o -perm /077 -type f; ls -A /tenant-executor/build/stages | grep -c build_script"), "prepare_script"); code != 0 || out != "3\n" {
				t.Errorf("exit code %d; files that others may use, or too few stages:\n%s", code, out)
			}
		})
	}
}

// inRegistry says whether the local registry has an image.
func inRegistry(t *testing.T, name string) bool {
	t.Helper()
	ask, err := http.NewRequestWithContext(limited(t, time.Minute), http.MethodHead, "http://"+bed.Registry+"/v2/localtenant/"+name+"/manifests/1", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusNotFound {
		t.Fatalf("the registry answers %s", answer.Status)
	}
	return answer.StatusCode == http.StatusOK
}

// finding is a script that tells what it finds with what every shell has, and
// leaves with 42.
const finding = `while read -r key value rest; do
	case $key in Uid:) echo "user $value" ;; esac
done </proc/self/status
echo "umask $(umask)"
if (: >/written) 2>/dev/null; then echo root is written; else echo root is not written; fi
if [ -d /tmp ]; then echo tmp; else echo no tmp; fi
echo to stderr >&2
exit 42
`

// finds is what the script prints, and the driver after it.
func (i image) finds() string {
	say := func(yes bool, a, b string) string {
		if yes {
			return a
		}
		return b
	}
	return fmt.Sprintf("user %d\numask %s\n%s\n%s\nto stderr\n", i.uid(), say(i.umask != "", "0"+i.umask, "0022"),
		say(i.readOnly || i.uid() != 0, "root is not written", "root is written"), say(i.noTmp || i.takeTmp, "no tmp", "tmp"))
}

// upTo is what a shell prints that counts from 0.
func upTo(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// config has the job's Pod carry what harden heeds.
func (i image) config(t *testing.T) string {
	t.Helper()
	labels := ""
	for name, value := range map[string]string{labelUser: fmt.Sprint(i.user), labelReadOnly: fmt.Sprint(i.readOnly), labelTakeTmp: fmt.Sprint(i.takeTmp)} {
		if value != "0" && value != "false" {
			labels += fmt.Sprintf("%q = %q\n", name, value)
		}
	}
	path, err := bed.WriteConfig(testbed.Namespace, "[kubernetes.pod_labels]\n"+labels)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// restrict puts a umask before the agent, which neither an image nor a Pod can
// set for what an exec starts.
func restrict(t *testing.T, h hand, umask string) {
	t.Helper()
	script := fmt.Sprintf(`set -e
cd /tenant-executor
mv podagent podagent.real
printf '#!/bin/sh\numask %s\nexec /tenant-executor/podagent.real "$@"\n' >podagent
chmod 755 podagent`, umask)
	if out, code := h.do("run", h.script(script), "prepare_script"); code != 0 {
		t.Fatalf("putting a umask before the agent: exit code %d, output %q", code, out)
	}
}

// cancelStage cancels a stage that ignores TERM, and has another one look for
// its processes, with what every shell has.
func cancelStage(t *testing.T, h hand) {
	t.Helper()
	cmd := h.command("run", h.script("trap '' TERM; echo ready; while :; do :; done"), "build_script")
	var out lockedOutput
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Until(context.Background(), "the script", time.Minute, func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "ready"), nil
	}); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the cancelled stage ended with %d: %s", cmd.ProcessState.ExitCode(), out.String())
	}
	// The keeper, what it waits for, the agents of this stage, and its script.
	const look = `for p in /proc/[0-9]*; do
	state=; while read -r key value rest; do case $key in State:) state=$value ;; esac; done 2>/dev/null <$p/status
	case $state in R) [ $p = /proc/$$ ] || echo runs $p ;; esac
done; echo looked`
	if out, code := h.do("run", h.script(look), "after_script"); code != 0 || !strings.HasSuffix(out, "looked\n") || strings.Count(out, "runs") > 1 {
		t.Errorf("after the cancel: exit code %d, output %q", code, out)
	}
}
