package doctor

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
)

// said is a probe with what git said.
func said(fetch, exit string) probeFacts {
	return probeFacts{running: true, look: "runner=19.4.0\ngit=2.45.1\nlfs=git-lfs/3.5.1\n", fetch: fetch + "\nexit=" + exit + "\n"}
}

func TestJudgeProbe(t *testing.T) {
	const at = "https://gitlab.example.com"
	well := said("* Trying 10.1.2.3:443...\n<= Recv header: HTTP/2 401\nfatal: could not read Username", "128")
	well.node, well.booted, well.forNode, well.image, well.helper = "n1", true, 40*time.Second, "debian:12", "helper:1"
	lacking := failure.New(failure.HelperUnusable, "no gitlab-runner")
	notReached := probeFacts{running: true, prepareErr: failure.New(failure.ReachTimeout, "no command reached it")}
	noNode := probeFacts{prepareErr: failure.New(failure.NoNode, "still waiting")}
	noTLS := said("* SSL certificate problem: unable to get local issuer certificate\n", "128")
	second := func(f secondFacts) Result {
		f.ceiling = max(f.ceiling, 1)
		return judgeProbeSecond(probeFacts{second: &f})
	}
	none := failure.New(failure.NoNode, "still waiting")
	expect(t, map[string]judged{
		"second":                {second(secondFacts{ceiling: 2, node: "n2", booted: true, forNode: 40 * time.Second}), OK, "n2 was booted for a second Pod (40 s)"},
		"second, node there":    {second(secondFacts{ceiling: 2, node: "n2"}), OK, "not seen by that"},
		"second, none comes":    {second(secondFacts{ceiling: 2, took: 2 * time.Minute, err: none}), Failure, "no node came for a second Pod within 2 min, although there may be 2: jobs run one after the other -> set SOCIALWEB_CLUSTERPROVIDER_SCALE_PODS_PER_NODE to 1"},
		"second, all taken":     {second(secondFacts{ceiling: 10, nodes: 2, took: 2 * time.Minute, err: none}), Warning, "the 2 that are there are taken, and tenant.ceiling is 10"},
		"second, at ceiling":    {second(secondFacts{ceiling: 2, nodes: 2, err: none}), Skipped, "all 2 nodes are taken"},
		"second, one is there":  {second(secondFacts{ceiling: 10, nodes: 1, took: 2 * time.Minute, err: none}), Failure, "although there may be 10"},
		"second, other trouble": {second(secondFacts{ceiling: 2, err: failure.New(failure.Access, "forbidden")}), Failure, "forbidden"},
		"second, ceiling 1":     {second(secondFacts{}), Skipped, "tenant.ceiling is 1"},
		"second, not tried":     {judgeProbeSecond(noNode), Skipped, "not readied"},
		"second, not gone":      {judgeProbeEnd(probeFacts{second: &secondFacts{endErr: errors.New("second is there")}}), Warning, "second is there"},
		"Pod":                   {judgeProbePod(well), OK, "node n1 was booted (40 s), images debian:12 and helper:1"},
		"no node":               {judgeProbePod(noNode), Failure, "still waiting"},
		"interrupted":           {judgeProbePod(probeFacts{prepareErr: failure.New(failure.Interrupted, "x")}), Failure, "interrupted"},
		"Pod, not reached":      {judgeProbePod(notReached), OK, "was there"},
		"exec":                  {judgeProbeExec(well), OK, "upgraded"},
		"exec, not reached":     {judgeProbeExec(notReached), Failure, "no command"},
		"exec, lost":            {judgeProbeExec(probeFacts{running: true, lookErr: failure.New(failure.ConnectionLost, "lost")}), Failure, "lost"},
		"exec, bad helper":      {judgeProbeExec(probeFacts{running: true, prepareErr: lacking}), OK, "upgraded"},
		"helper":                {judgeProbeHelper(well), OK, "gitlab-runner 19.4.0, git 2.45.1, git-lfs/3.5.1"},
		"helper lacks it":       {judgeProbeHelper(probeFacts{running: true, prepareErr: lacking}), Failure, "no gitlab-runner"},
		"helper, no git":        {judgeProbeHelper(probeFacts{look: "runner=1\ngit=\nlfs=\n"}), Failure, "has no git"},
		"helper, no LFS":        {judgeProbeHelper(probeFacts{look: "runner=\ngit=2\nlfs=\n"}), Warning, "no git-lfs"},
		"DNS":                   {judgeProbeDNS(well, at), OK, "gitlab.example.com is at 10.1.2.3"},
		"DNS, IPv6":             {judgeProbeDNS(said("* Trying [2001:db8::1]:443...", "0"), at), OK, "2001:db8::1"},
		"DNS, unknown":          {judgeProbeDNS(said("fatal: unable to access 'x': Could not resolve host: gitlab.example.com", "128"), at), Failure, "CoreDNS"},
		"DNS of nothing":        {judgeProbeDNS(well, ""), Skipped, "--gitlab"},
		"DNS, not tried":        {judgeProbeDNS(probeFacts{fetchErr: failure.New(failure.PodLost, "lost")}, at), Failure, "lost"},
		"GitLab, cut off":       {judgeProbeGitLab(probeFacts{fetch: "* Trying", fetchErr: failure.New(failure.PodLost, "lost")}, at, false), Failure, "lost"},
		"GitLab":                {judgeProbeGitLab(well, at, false), OK, "HTTP status 401"},
		"GitLab, sick":          {judgeProbeGitLab(said("<= Recv header: HTTP/1.1 502 Bad Gateway", "128"), at, false), Failure, "502"},
		"GitLab, refused":       {judgeProbeGitLab(said("Failed to connect to gitlab.example.com port 443 after 0 ms: Couldn't connect to server", "128"), at, false), Failure, "does not let the Pod connect"},
		"GitLab, silent":        {judgeProbeGitLab(said("", "124"), at, false), Failure, "within 20 s"},
		"GitLab, silent 2":      {judgeProbeGitLab(said("", "143"), at, false), Failure, "within 20 s"},
		"GitLab, own CA":        {judgeProbeGitLab(noTLS, at, true), OK, "tls-ca-file"},
		"GitLab, no CA":         {judgeProbeGitLab(noTLS, at, false), Failure, "unable to get local issuer certificate"},
		"GitLab, quiet git":     {judgeProbeGitLab(said("", "0"), at, false), OK, "answers"},
		"GitLab, puzzling":      {judgeProbeGitLab(said("fatal: first\nfatal: puzzling", "128"), at, false), Warning, "128: fatal: puzzling"},
		"GitLab, not known":     {judgeProbeGitLab(well, "", false), Skipped, "--gitlab"},
		"gone":                  {judgeProbeEnd(well), OK, "gone"},
		"not gone":              {judgeProbeEnd(probeFacts{endErr: errors.New("unreachable")}), Warning, "unreachable"},
	})
}

func TestTimes(t *testing.T) {
	at := func(s int) metav1.Time { return metav1.Unix(1_800_000_000+int64(s), 0) }
	running := func(s int) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(s)}}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(0)}, Status: corev1.PodStatus{
		Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(30)}},
		ContainerStatuses: []corev1.ContainerStatus{running(35), running(50)},
	}}
	made, bound, started := times(p)
	if bound.Sub(made) != 30*time.Second || started.Sub(bound) != 20*time.Second {
		t.Errorf("got %s, %s, %s", made, bound, started)
	}
}

func TestQuote(t *testing.T) {
	if got := quote(`a'b $c`); got != `'a'\''b $c'` {
		t.Errorf("got %s", got)
	}
}

func TestAddressOfGitLab(t *testing.T) {
	ours := []runnerEntry{{URL: "https://gitlab.example.com/"}}
	clone := []runnerEntry{{URL: "https://gitlab.example.com", CloneURL: "https://user:secret@inner.example.com/gitlab/?a=b"}}
	for _, c := range []struct {
		p    patient
		want string
	}{
		{patient{}, ""},
		{patient{ours: ours}, "https://gitlab.example.com"},
		{patient{ours: clone}, "https://inner.example.com/gitlab"},
		{patient{ours: ours, Parts: Parts{GitLab: "http://10.0.0.1:8080"}}, "http://10.0.0.1:8080"},
	} {
		if got := c.p.gitlab(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
