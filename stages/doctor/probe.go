package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/joblog"
)

// probeFacts is what became of the probe's Pod.
type probeFacts struct {
	// prepareErr, lookErr and fetchErr are why the Pod was not readied, not
	// looked at, or GitLab not tried.
	prepareErr, lookErr, fetchErr error
	// running is whether the Pod ran, however the rest went.
	running bool
	node    string
	// booted is whether the node was booted for the Pod.
	booted bool
	// forNode, forStart and forReach are how long each step took.
	forNode, forStart, forReach time.Duration
	image, helper               string
	// look and fetch are what the scripts have said, lookTook and fetchTook how
	// long each took from its start to its end.
	look, fetch         string
	lookTook, fetchTook time.Duration
	// endErr is why the Pod is not gone.
	endErr error
	// second is what became of a second Pod beside this one, nil where none was
	// made.
	second *secondFacts
}

// secondFacts is what became of a second Pod, which needs a node of its own.
type secondFacts struct {
	// ceiling is how many nodes there may be.
	ceiling int
	// node is where it went, "" for nowhere; booted is whether the node was
	// booted for it, forNode how long that took.
	node    string
	booted  bool
	forNode time.Duration
	// nodes is how many nodes there were when it had waited in vain.
	nodes int
	// took is how long the whole attempt took, err why it was not readied.
	took        time.Duration
	err, endErr error
}

// notProbed is why the checks of a probe are skipped.
func notProbed() Result { return skip("doctor --probe makes a Pod and looks") }

func ofFailure(err error) Result {
	f := failure.Of(err)
	if f.Cause == failure.Interrupted || f.Cause == failure.Cancelled {
		return failed("doctor was interrupted before this was known", "run it again")
	}
	return failed(f.Error(), f.Remedy())
}

func judgeProbePod(f probeFacts) Result {
	if !f.running {
		return ofFailure(f.prepareErr)
	}
	how := "was there"
	if f.booted {
		how = "was booted"
	}
	return ok("node %s %s (%s), images %s and %s were pulled and started (%s)",
		f.node, how, joblog.Duration(f.forNode), f.image, f.helper, joblog.Duration(f.forStart))
}

func judgeProbeExec(f probeFacts) Result {
	switch {
	case f.prepareErr != nil && failure.Of(f.prepareErr).Cause == failure.HelperUnusable:
		return ok("commands reach the Pod, over an upgraded connection") // it was the command that said so
	case f.prepareErr != nil:
		return ofFailure(f.prepareErr)
	case f.lookErr != nil:
		return ofFailure(f.lookErr)
	}
	return ok("reached after %s over an upgraded connection; a script ran to its end in %s", joblog.Duration(f.forReach), short(f.lookTook))
}

// short is a short time.
func short(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// value is what a script has said under a name, "" if nothing.
func value(text, name string) string {
	for line := range strings.Lines(text) {
		if found, has := strings.CutPrefix(line, name+"="); has {
			return strings.TrimSpace(found)
		}
	}
	return ""
}

func judgeProbeHelper(f probeFacts) Result {
	const remedy = "set kubernetes.helper_image to GitLab's gitlab-runner-helper image of the runner's version"
	if f.prepareErr != nil {
		return ofFailure(f.prepareErr)
	}
	runner, git, lfs := value(f.look, "runner"), value(f.look, "git"), value(f.look, "lfs")
	if runner == "" {
		runner = "(of a version that it does not tell)"
	}
	switch {
	case git == "":
		return failed(f.helper+" has no git", remedy)
	case lfs == "":
		return warning(fmt.Sprintf("%s has gitlab-runner %s, git %s and no git-lfs: repositories with large files are checked out without them", f.helper, runner, git), remedy)
	}
	return ok("gitlab-runner %s, git %s, %s", runner, git, lfs)
}

// Words of git and of libcurl, in the locale C.
const (
	unresolved = `Could not resolve host: \S+`
	tried      = `Trying \[?([0-9a-fA-F.:]+?)\]?(:\d+)?\.\.\.`
	answered   = `HTTP/[0-9.]+ (\d{3})`
	untrusted  = `(?i)SSL certificate problem: [^\n]*|server certificate verification failed[^\n]*`
	refused    = `(?m)(?:Failed to connect to|Could not connect to|Couldn't connect to) .*$`
)

// last is the last match of an expression, or of the group in it; "" for none.
func last(expression, text string) string {
	all := regexp.MustCompile(expression).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return ""
	}
	match := all[len(all)-1]
	return match[min(1, len(match)-1)]
}

const noGitLab = "GitLab's address is not known; name it with --gitlab, or the runner's config.toml with --runner-config"

func judgeProbeDNS(f probeFacts, address string) Result {
	name := host(address)
	switch {
	case address == "":
		return skip("%s", noGitLab)
	case f.fetchErr != nil && f.fetch == "":
		return ofFailure(f.fetchErr)
	case last(unresolved, f.fetch) != "":
		return failed("the Pod does not find the host "+name, "look at the DNS that Pods use: the node's own resolver, or CoreDNS, which has to run also after all nodes were gone; or use an address that it knows")
	}
	if at := last(tried, f.fetch); at != "" {
		return ok("%s is at %s", name, at)
	}
	return ok("%s was found", name)
}

// judgeProbeGitLab judges what git said. OwnCA is whether jobs get a CA of the
// runner's (tls-ca-file), which doctor's Pod does not have.
func judgeProbeGitLab(f probeFacts, address string, ownCA bool) Result {
	status, trust, exit := last(answered, f.fetch), last(untrusted, f.fetch), value(f.fetch, "exit")
	switch {
	case address == "":
		return skip("%s", noGitLab)
	case trust != "" && ownCA:
		return ok("%s answers; its certificate needs the CA of tls-ca-file, which jobs get", address)
	case trust != "":
		return failed(fmt.Sprintf("%s answers, and its certificate is not trusted in the Pod: %s", address, trust), "set tls-ca-file in [[runners]], which jobs get as well")
	case strings.HasPrefix(status, "5"):
		return failed(fmt.Sprintf("%s answers with HTTP status %s", address, status), "look at GitLab, and at what stands before it")
	case status != "":
		return ok("%s answers after %s (HTTP status %s)", address, short(f.fetchTook), status)
	case exit == "124" || exit == "143": // GNU's timeout, BusyBox's
		return failed(address+" does not answer the Pod within 20 s", "look at the network between the nodes and GitLab: routes, firewalls, proxies")
	case last(refused, f.fetch) != "":
		return failed(fmt.Sprintf("%s does not let the Pod connect", address), "look at the network between the nodes and GitLab: routes, firewalls, proxies")
	case exit == "0":
		return ok("%s answers after %s", address, short(f.fetchTook))
	case f.fetchErr != nil:
		return ofFailure(f.fetchErr)
	}
	said, _, _ := strings.Cut(f.fetch, "\nexit=")
	return warning(fmt.Sprintf("%s: git ended with exit code %s: %s", address, exit, lastLine(said)), "try it by hand, in the helper container of a job")
}

func lastLine(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return all[len(all)-1]
}

// judgeProbeSecond judges whether the gateway boots a node for each job. Only one
// that was booted for the Pod proves it.
func judgeProbeSecond(f probeFacts) Result {
	s := f.second
	switch {
	case s == nil:
		return skip("the first Pod was not readied")
	case s.ceiling < 2:
		return skip("tenant.ceiling is %d: there is no second node", s.ceiling)
	case s.node != "" && s.booted:
		return ok("node %s was booted for a second Pod (%s): the gateway counts one Pod for a node", s.node, joblog.Duration(s.forNode))
	case s.node != "":
		return ok("a second Pod went to node %s, which was there already; whether one would be booted is not seen by that", s.node)
	case s.err != nil && s.nodes >= s.ceiling && slices.Contains([]failure.Cause{failure.NoNode, failure.NodesBusy}, failure.Of(s.err).Cause):
		return skip("all %d nodes are taken; run it again when fewer jobs run", s.nodes)
	case s.err != nil && failure.Of(s.err).Cause != failure.NoNode:
		return ofFailure(s.err)
	}
	if s.nodes > 1 {
		return warning(fmt.Sprintf("no node came for a second Pod within %s; the %d that are there are taken, and tenant.ceiling is %d", joblog.Duration(s.took), s.nodes, s.ceiling),
			"run it again when fewer jobs run; if the gateway's ceiling is less than tenant.ceiling, set that to the same, and if "+podsPerNodeVariable+" is not 1 at the gateway, set it to 1")
	}
	return failed(fmt.Sprintf("no node came for a second Pod within %s, although there may be %d: jobs run one after the other", joblog.Duration(s.took), s.ceiling),
		"set "+podsPerNodeVariable+" to 1 at the gateway (its default is 8); if it is 1, look at the gateway's ceiling and log for why it boots none")
}

func judgeProbeEnd(f probeFacts) Result {
	if f.endErr == nil && f.second != nil {
		f.endErr = f.second.endErr
	}
	if f.endErr != nil {
		return warning("the probe's Pod is not gone: "+f.endErr.Error(), "it ends by itself within half an hour; tenant-executor reap removes it then")
	}
	return ok("the Pod is gone; its node goes when the gateway's hold is over")
}
