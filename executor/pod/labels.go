package pod

import (
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// The driver's own labels and annotations. Labels hold ids, annotations hold
// what people read.
const (
	domain = "tenant-executor.socialweb.computer/"

	// LabelComponent marks every object of the driver by what it is. Job Pods
	// keep away from each other by it.
	LabelComponent = domain + "component"
	// LabelJob is the key of the job (job.Job.Key).
	LabelJob = domain + "job"
	// LabelJobID is the job's id, for people who look for it.
	LabelJobID = domain + "job-id"
	// LabelRunner is the short token of the runner.
	LabelRunner = domain + "runner"
	// LabelAttempt tells the attempts of one job apart.
	LabelAttempt = domain + "attempt"

	// LabelNode marks the Pods of which a node gets one: job Pods and
	// placeholders. Placeholders look for nodes without such a Pod.
	LabelNode = domain + "node"
	// LabelHold is why a placeholder holds its node: HoldLinger or HoldPolicy.
	LabelHold = domain + "hold"

	// AnnotationExpires is when the Pod has no business any more, RFC 3339.
	AnnotationExpires = domain + "expires"

	// AnnotationHeld is until when the Pod of a failed job is kept for a look,
	// RFC 3339.
	AnnotationHeld = domain + "held"

	// AnnotationOwner is the runner's process that the Pod belongs to.
	AnnotationOwner = domain + "owner"
	// AnnotationProject is the full path of the job's project, where no address
	// of the job's page tells it.
	AnnotationProject = domain + "project"
	// AnnotationWanted is until when somebody wants a policy's placeholder,
	// RFC 3339. It is renewed for as long as it is wanted.
	AnnotationWanted = domain + "wanted"

	// ComponentJob is the LabelComponent of a job's Pod.
	ComponentJob = "job"
	// ComponentPlaceholder is the LabelComponent of a Pod that does nothing but
	// hold a node.
	ComponentPlaceholder = "placeholder"
	// NodeWhole is the value of LabelNode.
	NodeWhole = "whole"
	// HoldLinger is the LabelHold of a placeholder that holds the node of a job
	// which has ended, HoldPolicy that of one by policy.
	HoldLinger = "linger"
	HoldPolicy = "policy"
)

// runnerDomain is the label space of the kubernetes executor
// (executors/kubernetes/kubernetes.go:2427). Its labels are set here as well,
// so that network policies, dashboards and cost reports go on working.
const runnerDomain = "runner.gitlab.com/"

// labelSlot is a label of the kubernetes executor outside the runner's own
// label space, so that the operator can set it.
const labelSlot = "pod"

// ProtectedFromJobs reports whether a label or annotation is one that a job must
// not set, whatever the operator's settings let it set.
func ProtectedFromJobs(name string) bool { return name == labelSlot || Protected(name) }

// Protected reports whether a label or annotation is the runner's or the
// driver's own, which settings must not set.
func Protected(name string) bool {
	prefix, _, found := strings.Cut(name, "/")
	if !found {
		return false
	}
	space := strings.TrimSuffix(runnerDomain, "/")
	return prefix == strings.TrimSuffix(domain, "/") || prefix == space || strings.HasSuffix(prefix, "."+space)
}

// Told is what the annotations of a job's Pod tell people of the job.
type Told struct {
	// Name is the job's name, Project the full path of its project, URL its
	// page; "" where the Pod does not say.
	Name, Project, URL string
}

// Tell reads the annotations of a job's Pod.
func Tell(annotations map[string]string) Told {
	t := Told{Name: annotations["job."+runnerDomain+"name"], Project: annotations[AnnotationProject], URL: annotations["job."+runnerDomain+"url"]}
	if page, err := url.Parse(t.URL); err == nil && t.Project == "" {
		t.Project, _, _ = strings.Cut(strings.TrimPrefix(page.Path, "/"), "/-/jobs/")
	}
	return t
}

func (p Plan) labels() map[string]string {
	j := p.Job
	namespace := path.Dir(j.Project.FullPath)
	root, _, _ := strings.Cut(j.Project.FullPath, "/")
	if namespace == "." {
		namespace, root = "", ""
	}
	unique := runnerLabelValue(uniqueName(j))

	// The operator's own value of this one counts, as in the kubernetes executor
	// (executors/kubernetes/kubernetes.go, buildLabels).
	labels := map[string]string{labelSlot: unique}
	for name, value := range p.Settings.PodLabels {
		labels[name] = runnerLabelValue(p.expand(value))
	}
	for name, value := range map[string]string{
		LabelComponent: ComponentJob,
		LabelNode:      NodeWhole,
		LabelJob:       j.Key(),
		LabelJobID:     decimal(j.ID),
		LabelRunner:    LabelValue(j.RunnerToken),
		LabelAttempt:   p.Attempt,

		"job." + runnerDomain + "pod":                   unique,
		"project." + runnerDomain + "id":                decimal(j.Project.ID),
		"project." + runnerDomain + "name":              runnerLabelValue(j.Project.Name),
		"project." + runnerDomain + "namespace":         runnerLabelValue(namespace),
		"project." + runnerDomain + "namespace-id":      sentID(j.Project.NamespaceID),
		"project." + runnerDomain + "root-namespace":    runnerLabelValue(root),
		"project." + runnerDomain + "root-namespace-id": decimal(j.Project.RootNamespaceID),
		"manager." + runnerDomain + "name":              runnerLabelValue(j.RunnerName),
		"manager." + runnerDomain + "id-short":          runnerLabelValue(j.RunnerToken),
	} {
		labels[name] = value
	}
	return labels
}

// uniqueName is what the runner calls a job slot of a project
// (common/build.go:376), with characters left out as there
// (helpers/dns/utils.go).
func uniqueName(j job.Job) string {
	name := strings.ToLower(strings.Join([]string{"runner", j.RunnerToken, "project", decimal(j.Project.ID), "concurrent", j.ConcurrentID}, "-"))
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, name)
}

func (p Plan) annotations() map[string]string {
	j := p.Job
	annotations := map[string]string{
		// Autoscalers must not move a job: it cannot be started again. The
		// operator may know better.
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
	for name, value := range p.Settings.PodAnnotations {
		annotations[name] = p.expand(value)
	}
	if p.Owner != "" {
		annotations[AnnotationOwner] = p.Owner
	}
	if j.URL() == "" && j.Project.FullPath != "" {
		annotations[AnnotationProject] = j.Project.FullPath
	}
	for name, value := range map[string]string{
		AnnotationExpires: p.expires().UTC().Format(time.RFC3339),

		"job." + runnerDomain + "id":         decimal(j.ID),
		"job." + runnerDomain + "name":       j.Name,
		"job." + runnerDomain + "url":        j.URL(),
		"job." + runnerDomain + "ref":        j.Git.Ref,
		"job." + runnerDomain + "sha":        j.Git.SHA,
		"job." + runnerDomain + "before_sha": j.Git.BeforeSHA,
		"job." + runnerDomain + "timeout":    j.Timeout.String(),
		"project." + runnerDomain + "id":     decimal(j.Project.ID),
	} {
		annotations[name] = value
	}
	return annotations
}

// SelectorAll finds the Pods of all jobs.
func SelectorAll() string { return LabelComponent + "=" + ComponentJob }

// SelectorNode finds every Pod that has or wants a node of its own.
func SelectorNode() string { return LabelNode + "=" + NodeWhole }

// SelectorTakers finds the Pods of all jobs and every placeholder: what takes a
// node.
func SelectorTakers() string {
	return LabelComponent + " in (" + ComponentJob + "," + ComponentPlaceholder + ")"
}

// IDSelector finds the Pods of all jobs with an id: of several runners, and of
// several GitLab instances.
func IDSelector(id int64) string { return SelectorAll() + "," + LabelJobID + "=" + decimal(id) }

// PlaceholderSelector finds every placeholder.
func PlaceholderSelector() string { return LabelComponent + "=" + ComponentPlaceholder }

// Selector finds every Pod of a job, of whichever attempt.
func Selector(j job.Job) string { return KeySelector(j.Key()) }

// KeySelector is Selector for a job of which only the key is known.
func KeySelector(key string) string {
	return LabelComponent + "=" + ComponentJob + "," + LabelJob + "=" + key
}

// SelectorMade finds everything that was made for any job, of any kind.
func SelectorMade() string { return LabelJob }

// RunnerObjects finds everything that was made for a runner's jobs, of any
// kind.
func RunnerObjects(token string) string { return LabelRunner + "=" + LabelValue(token) }
