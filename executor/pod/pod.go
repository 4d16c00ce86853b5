// Package pod is the Pod that a job becomes: pure, so that the whole of it can
// be looked at and tested without a cluster.
package pod

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/registry"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Plan is all that decides what a job's Pod looks like.
type Plan struct {
	Job      job.Job
	Settings settings.Kubernetes
	// Variables are the job's variables.
	Variables job.Environment
	// BuildsDir and CacheDir are folders of the job, on volumes that its
	// containers share.
	BuildsDir, CacheDir string
	// Attempt tells this Pod from those of earlier attempts: a few lower-case
	// letters and digits.
	Attempt string
	// Remake counts the Pods that this attempt has made before.
	Remake int
	// PullsFailed counts the pull policies that have failed before in this
	// attempt, by container.
	PullsFailed map[string]int
	// Logins are those to registries that the job and the runner have. The Pod
	// gets the ones that its images need.
	Logins registry.Logins
	// HostArch is the architecture of the runner's host, as Go names it.
	HostArch string
	// Keeper is the command that keeps a container alive between stages. The
	// container's name is added to it.
	Keeper []string
	// Folder is where the driver keeps scripts while a stage runs, on a
	// volume of its own.
	Folder string
	// KeeperMark is the file in which the keeper of the build container says
	// that it runs, behind an entrypoint of the image.
	KeeperMark string
	// Wait is how long the Pod may take to start.
	Wait time.Duration
	// Owner is the text of AnnotationOwner, "" for a Pod that nobody owns.
	Owner string
	// Now is when the Pod is made.
	Now time.Time
	// ReadFile reads the files that patches of pod_spec stand in.
	ReadFile func(path string) ([]byte, error)
}

// Objects are what a job becomes on the cluster.
type Objects struct {
	Pod *corev1.Pod
	// Namespace is the job's own, nil where it has none. It is made first, and
	// everything goes with it.
	Namespace *corev1.Namespace
	// Secrets are made before the Pod, and belong to it once it is there: they
	// go with it.
	Secrets []*corev1.Secret
	// Budget keeps the Pod from being evicted, nil where nobody asked for it.
	// It is made after the Pod, and belongs to it.
	Budget *policyv1.PodDisruptionBudget
	// Made are the names of the containers that the driver has built: those of the
	// stages and of the services. Patches of pod_spec may have added others.
	Made []string
	// Pulls are the pull policies of each container.
	Pulls Pulls
	// Services are the job's services, whose containers are in the Pod.
	Services []Service
	// Notes are for the reader of the job log: what of the job's wishes is not
	// followed.
	Notes []string
}

// Slack on top of the job's time-out, in which the runner's last stages and
// cleanup end. The deadline only matters where they never come.
const slack = 15 * time.Minute

// terminationGrace is how long the keeper has to end, in seconds. It ends at
// once; a longer grace would hold the node after an eviction.
const terminationGrace = 5

// Build makes the objects, or says why the job cannot become any: then the
// error is a *failure.Failure.
func (p Plan) Build() (Objects, error) {
	b := &builder{Plan: p}
	for _, step := range []func() error{
		b.check,
		b.frame,
		b.containers,
		b.services,
		b.schedule,
		// Steps that add containers belong above this line: those below are
		// for every container.
		b.storage,
		b.live,
		b.resolve,
		b.secure,
		b.jobUsers,
		b.entrypoint,
		b.logins,
		// Steps that change a container, its user for one, belong above this
		// line: those below look at what has come out.
		b.patch,
		b.seal,
		b.daemons,
		b.protect,
		b.house,
	} {
		if err := step(); err != nil {
			return Objects{}, err
		}
	}
	return b.Objects, nil
}

// builder makes the objects of a plan step by step.
type builder struct {
	Plan
	Objects

	// unpatched is the Pod's spec before the patches of pod_spec.
	unpatched *corev1.PodSpec
}

// name is the Pod's name.
func (p Plan) name() string {
	name := p.Job.PodName(p.Attempt)
	if p.Remake > 0 {
		name += "-" + strconv.Itoa(p.Remake+1)
	}
	return name
}

// expand puts the job's variables into a text of the settings.
func (p Plan) expand(text string) string { return p.Job.ExpandWith(p.Variables, nil, text) }

// frame is the Pod without its containers.
func (b *builder) frame() error {
	deadline := int64((b.Job.Timeout + slack) / time.Second)
	grace := int64(terminationGrace)
	no := false
	b.Pod = &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        b.name(),
			Namespace:   Namespace(b.Settings, b.Job),
			Labels:      b.labels(),
			Annotations: b.annotations(),
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ActiveDeadlineSeconds:         &deadline,
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			ServiceAccountName:            b.Settings.ServiceAccount,
		},
	}
	return nil
}

// containers are those in which stages run.
func (b *builder) containers() error {
	build, err := b.container(job.Build, b.image(), b.Settings.BuildResources())
	if err != nil {
		return err
	}
	image, err := b.HelperImage()
	if err != nil {
		return err
	}
	helper, err := b.container(job.Helper, image, b.Settings.HelperResources())
	if err != nil {
		return err
	}
	b.Pod.Spec.Containers = []corev1.Container{build, helper}
	return nil
}

func (b *builder) check() error {
	if err := b.checkImage(); err != nil {
		return err
	}
	for _, names := range []map[string]string{b.Settings.PodLabels, b.Settings.PodAnnotations} {
		for name := range names {
			if Protected(name) {
				return failure.New(failure.Settings, "kubernetes.pod_labels or pod_annotations sets %q, which belongs to the driver", name)
			}
		}
	}
	return nil
}

func (b *builder) container(name job.Container, image string, resources []settings.Resource) (corev1.Container, error) {
	requirements, err := requirements(resources)
	if err != nil {
		return corev1.Container{}, failure.Wrap(failure.Settings, err, "resources of the %s container", name)
	}
	// The helper is pulled as the job's image is, as in the kubernetes executor
	// (executors/kubernetes/kubernetes.go, preparePullManager).
	policy, err := b.pull(string(name), b.Job.Image)
	if err != nil {
		return corev1.Container{}, err
	}
	return corev1.Container{
		Name:            string(name),
		Image:           image,
		ImagePullPolicy: policy,
		Command:         literally(append(append([]string{}, b.Keeper...), string(name))),
		Resources:       requirements,
		// A container that does not start says why in its log, if anywhere.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}, nil
}

// resourceNames maps the settings' names to Kubernetes' own.
func resourceName(name string) (corev1.ResourceName, error) {
	switch name {
	case "cpu", "helper_cpu":
		return corev1.ResourceCPU, nil
	case "memory", "helper_memory":
		return corev1.ResourceMemory, nil
	case "ephemeral_storage", "helper_ephemeral_storage":
		return corev1.ResourceEphemeralStorage, nil
	}
	return "", errors.New("unknown resource " + name)
}

func requirements(resources []settings.Resource) (corev1.ResourceRequirements, error) {
	r := corev1.ResourceRequirements{}
	for _, res := range resources {
		name, err := resourceName(res.Name)
		if err != nil {
			return r, err
		}
		for _, side := range []struct {
			text string
			list *corev1.ResourceList
		}{{res.Request, &r.Requests}, {res.Limit, &r.Limits}} {
			if side.text == "" {
				continue
			}
			quantity, err := resource.ParseQuantity(side.text)
			if err != nil {
				return r, fmt.Errorf("%s: %q: %w", res.Name, side.text, err)
			}
			if *side.list == nil {
				*side.list = corev1.ResourceList{}
			}
			(*side.list)[name] = quantity
		}
	}
	return r, nil
}

// expires is when the Pod has no business any more, even if it took all the
// time it may to start.
func (p Plan) expires() time.Time {
	return p.Now.Add(p.Wait + p.Job.Timeout + slack)
}
