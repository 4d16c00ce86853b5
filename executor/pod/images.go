package pod

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// image is the image of the build container, "" where there is none.
func (p Plan) image() string {
	if p.Job.Image.Name != "" {
		// The runner has expanded it (common/build.go, expandContainerOptions).
		return p.Job.Image.Name
	}
	return p.expand(p.Settings.Image)
}

// checkImage refuses a job without an image, or with one that it may not
// use.
func (b *builder) checkImage() error {
	switch {
	case b.image() != "":
	default:
		return failure.New(failure.ImageMissing, "job %d names no image", b.Job.ID)
	}
	return b.allowed(b.image(), "images", b.Settings.AllowedImages)
}

// allowed checks an image against the patterns of an allowed_… key. The
// operator's own image for jobs is always allowed, as in the kubernetes executor
// (executors/kubernetes/kubernetes.go, verifyAllowedImages).
func (b *builder) allowed(image, what string, patterns []string) error {
	if len(patterns) == 0 {
		return nil
	}
	if image == b.expand(b.Settings.Image) {
		return nil
	}
	for _, pattern := range patterns {
		if ok, err := doublestar.Match(pattern, image); ok && err == nil {
			return nil
		}
	}
	return failure.New(failure.NotAllowed, "the image %s is none of allowed_%s: %s", image, what, strings.Join(patterns, ", "))
}

// gitlabHelper is GitLab's helper image, without its tag
// (helpers/container/helperimage/info.go).
const gitlabHelper = "registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper"

// released finds the release in a runner's version.
var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+`)

// HelperImage is the image of the helper container: the operator's, or GitLab's
// under the name that the runner gives it
// (helpers/container/helperimage/linux_info.go). The error is a
// *failure.Failure.
func (p Plan) HelperImage() (string, error) {
	if p.Settings.HelperImage != "" {
		return p.expand(p.Settings.HelperImage), nil
	}
	selector := p.nodeSelector()
	if system := selector[corev1.LabelOSStable]; system != "" && system != "linux" {
		return "", failure.New(failure.Settings, "the node selector asks for %s=%s, and job Pods need Linux", corev1.LabelOSStable, system)
	}
	arch := selector[corev1.LabelArchStable]
	switch {
	case arch != "":
	case p.Settings.HelperImageAutosetArchAndOS:
		arch = p.HostArch
	default:
		arch = "amd64"
	}
	// A pipeline can set the variable, and then only picks among GitLab's own
	// images for its own job.
	version := "latest"
	if release := released.FindString(p.Variables.Variable("CI_RUNNER_VERSION")); release != "" {
		version = "v" + release
	}
	tag := helperArch(arch) + "-" + version
	// Alpine was there before there were flavours, so its tags have none.
	if flavor := p.expand(p.Settings.HelperImageFlavor); flavor != "" && flavor != "alpine" {
		tag = flavor + "-" + tag
	}
	return fmt.Sprintf("%s:%s", gitlabHelper, tag), nil
}

// nodeSelector is which labels the Pod's node has to have.
func (p Plan) nodeSelector() map[string]string { return p.Settings.NodeSelector }

// helperArch is how the helper image's tags name an architecture.
func helperArch(arch string) string {
	switch arch {
	case "amd64":
		return "x86_64"
	case "aarch64":
		return "arm64"
	case "armv6l", "armv7l":
		return "arm"
	}
	return arch
}

// Images are the images of the Pod's containers.
func (o Objects) Images() []string {
	var all []string
	for _, containers := range [][]corev1.Container{o.Pod.Spec.InitContainers, o.Pod.Spec.Containers} {
		for _, c := range containers {
			all = append(all, c.Image)
		}
	}
	return all
}

// of finds a container of the Pod.
func (b *builder) of(name job.Container) *corev1.Container {
	for i := range b.Pod.Spec.Containers {
		if b.Pod.Spec.Containers[i].Name == string(name) {
			return &b.Pod.Spec.Containers[i]
		}
	}
	return nil
}
