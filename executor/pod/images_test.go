package pod_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/registry"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// built is what a changed plan becomes.
func built(t *testing.T, change func(*pod.Plan)) pod.Objects {
	t.Helper()
	p := plan()
	change(&p)
	objects, err := p.Build()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// wantCause builds a changed plan and wants a failure that says something.
func wantCause(t *testing.T, change func(*pod.Plan), cause failure.Cause, says ...string) {
	t.Helper()
	p := plan()
	change(&p)
	_, err := p.Build()
	var f *failure.Failure
	if !errors.As(err, &f) || f.Cause != cause {
		t.Errorf("error %v, want cause %s", err, cause)
		return
	}
	for _, part := range says {
		if !strings.Contains(f.Error(), part) {
			t.Errorf("error %q does not say %q", f, part)
		}
	}
}

func container(t *testing.T, o pod.Objects, name string) corev1.Container {
	t.Helper()
	i := slices.IndexFunc(o.Pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the Pod has no container %s", name)
	}
	return o.Pod.Spec.Containers[i]
}

// goldenYAML compares objects with a file.
func goldenYAML(t *testing.T, file string, objects ...any) {
	t.Helper()
	var texts []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	golden(t, file, strings.Join(texts, "---\n"))
}

func variables(pairs ...string) job.Environment {
	env := job.Environment{}
	for i := 0; i < len(pairs); i += 2 {
		env["CUSTOM_ENV_"+pairs[i]] = pairs[i+1]
	}
	return env
}

func TestImagesAreExpanded(t *testing.T) {
	vars := variables("CI_REGISTRY_IMAGE", "registry.example.com/group/app", "TAG", "7", "CI_RUNNER_VERSION", "19.4.0")
	o := built(t, func(p *pod.Plan) {
		p.Variables = vars
		p.Job.Image.Name = "registry.example.com/group/app/x:$TAG" // the runner has expanded it
		p.Settings.HelperImage = "mirror/helper:x86_64-v$CI_RUNNER_VERSION"
	})
	if diff := cmp.Diff([]string{"registry.example.com/group/app/x:$TAG", "mirror/helper:x86_64-v19.4.0"}, o.Images()); diff != "" {
		t.Error(diff)
	}
	o = built(t, func(p *pod.Plan) { p.Variables, p.Job.Image.Name, p.Settings.Image = vars, "", "debian:$TAG" })
	if got := o.Images()[0]; got != "debian:7" {
		t.Errorf("default image %q", got)
	}
	wantCause(t, func(p *pod.Plan) { p.Job.Image.Name, p.Settings.Image = "", "$NOSUCH" }, failure.ImageMissing, "names no image")
}

func TestHelperImage(t *testing.T) {
	const name = "registry.gitlab.com/gitlab-org/gitlab-runner/gitlab-runner-helper:"
	arch := func(a string) map[string]string { return map[string]string{"kubernetes.io/arch": a} }
	for _, test := range []struct {
		name, version, flavor string
		selector              map[string]string
		autoset               bool
		want                  string
	}{
		{"plain", "19.4.0", "alpine", nil, false, "x86_64-v19.4.0"},
		{"no flavour", "19.4.0", "", nil, false, "x86_64-v19.4.0"},
		{"flavour", "19.4.0", "ubuntu", nil, false, "ubuntu-x86_64-v19.4.0"},
		{"flavour by variable", "19.4.0", "$FLAVOR", nil, false, "alpine3.21-x86_64-v19.4.0"},
		{"the selector's architecture", "19.4.0", "alpine", arch("arm64"), true, "arm64-v19.4.0"},
		{"amd64 in the selector", "19.4.0", "alpine", arch("amd64"), true, "x86_64-v19.4.0"},
		{"the host's", "19.4.0", "alpine", nil, true, "s390x-v19.4.0"},
		{"between two releases", "19.5.0~pre.12.gabcdef", "alpine", nil, false, "x86_64-v19.5.0"},
		{"built by hand", "development version", "alpine", nil, false, "x86_64-latest"},
		{"a forged version", "1.2.3/../../x", "alpine", nil, false, "x86_64-v1.2.3"},
		{"no version", "", "alpine", nil, false, "x86_64-latest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := built(t, func(p *pod.Plan) {
				p.Variables = variables("CI_RUNNER_VERSION", test.version, "FLAVOR", "alpine3.21")
				p.Settings.HelperImage, p.Settings.HelperImageFlavor, p.Settings.HelperImageAutosetArchAndOS = "", test.flavor, test.autoset
				p.Settings.NodeSelector, p.HostArch = test.selector, "s390x"
			})
			if got := container(t, o, "helper").Image; got != name+test.want {
				t.Errorf("helper image %s, want %s", got, name+test.want)
			}
		})
	}
	wantCause(t, func(p *pod.Plan) {
		p.Settings.HelperImage, p.Settings.NodeSelector = "", map[string]string{"kubernetes.io/os": "windows"}
	}, failure.Settings, "windows", "Linux")
}

func TestAllowedImages(t *testing.T) {
	for _, test := range []struct {
		patterns []string
		image    string
		allowed  bool
	}{
		{nil, "anything", true},
		{[]string{"debian:*"}, "debian:12", true},
		{[]string{"debian:*"}, "debian", false},
		{[]string{"registry.example.com/*"}, "registry.example.com/a/b:1", false},
		{[]string{"registry.example.com/**"}, "registry.example.com/a/b:1", true},
		{[]string{"x", "{ruby,node}:[0-9]*"}, "node:22", true},
		{[]string{"x"}, "default:1", true},  // the configuration's own
		{[]string{"x"}, "helper:19", false}, // no image for jobs
		{[]string{"x"}, "xx", false},
	} {
		change := func(p *pod.Plan) {
			p.Settings.AllowedImages, p.Settings.Image, p.Job.Image.Name = test.patterns, "default:1", test.image
		}
		if test.allowed {
			built(t, change)
			continue
		}
		wantCause(t, change, failure.NotAllowed, "image "+test.image+" is none of allowed_images", test.patterns[0])
	}
}

func TestAllowedServices(t *testing.T) {
	change := func(p *pod.Plan) {
		p.Variables = variables("V", "7")
		p.Job.Services = []job.Image{{Name: "redis:7"}, {Name: "postgres:7"}}
		p.Settings.AllowedServices = []string{"redis:*"}
	}
	wantCause(t, change, failure.NotAllowed, "image postgres:7 is none of allowed_services: redis:*")

	// Services of the configuration are no way around: a job's variable may
	// stand in their names.
	for _, name := range []string{"$ANY", "postgres:7"} {
		wantCause(t, func(p *pod.Plan) {
			p.Variables = variables("ANY", "postgres:7")
			p.Settings.Services = []settings.Service{{Name: name}}
			p.Settings.AllowedServices = []string{"redis:*"}
		}, failure.NotAllowed, "image postgres:7 is none of allowed_services: redis:*")
	}
	built(t, func(p *pod.Plan) {
		p.Settings.Image, p.Settings.Services = "default:1", []settings.Service{{Name: "redis:7"}, {Name: "default:1"}}
		p.Settings.AllowedServices = []string{"redis:*"}
	})
}

func TestPullPolicies(t *testing.T) {
	always, present, never := settings.PullAlways, settings.PullIfNotPresent, settings.PullNever
	for _, test := range []struct {
		name                string
		configured, allowed []string
		job, want           []string
		refused             failure.Cause
	}{
		{"nothing said", nil, nil, nil, []string{""}, ""},
		{"configured", []string{always, present}, nil, nil, []string{always, present}, ""},
		{"the job's, of those configured", []string{always, present}, nil, []string{present}, []string{present}, ""},
		{"the job's order", []string{always, present}, nil, []string{present, always}, []string{present, always}, ""},
		{"the job's, not configured", []string{always}, nil, []string{present}, nil, failure.NotAllowed},
		{"the job's, nothing configured", nil, nil, []string{always}, nil, failure.NotAllowed},
		{"the job's, allowed", []string{always}, []string{always, present}, []string{present}, []string{present}, ""},
		{"the job's, in part", []string{always}, []string{always}, []string{never, always}, []string{always}, ""},
		{"configured, in part", []string{never, always}, []string{always}, nil, []string{always}, ""},
		{"allowed alone", nil, []string{always, present}, nil, []string{always, present}, ""},
		{"no policy", []string{always}, nil, []string{"sometimes"}, nil, failure.JobInvalid},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := func(p *pod.Plan) {
				p.Settings.PullPolicy, p.Settings.AllowedPullPolicies, p.Job.Image.PullPolicies = test.configured, test.allowed, test.job
			}
			if test.refused != "" {
				wantCause(t, change, test.refused, "debian:12", test.job[0])
				return
			}
			o := built(t, change)
			if diff := cmp.Diff(pod.Pulls{"build": test.want, "helper": test.want}, o.Pulls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A container whose image could not be pulled goes on to its next policy, alone.
func TestNextPolicyOfOneContainer(t *testing.T) {
	kubernetes := map[int]corev1.PullPolicy{0: corev1.PullAlways, 1: corev1.PullIfNotPresent, 2: corev1.PullNever, 7: corev1.PullNever}
	for failed, want := range kubernetes {
		o := built(t, func(p *pod.Plan) {
			p.Settings.PullPolicy = settings.List{settings.PullAlways, settings.PullIfNotPresent, settings.PullNever}
			p.PullsFailed = map[string]int{"build": failed}
		})
		if got := container(t, o, "build").ImagePullPolicy; got != want {
			t.Errorf("after %d failures the policy is %s, want %s", failed, got, want)
		}
		if got := container(t, o, "helper").ImagePullPolicy; got != corev1.PullAlways {
			t.Errorf("the helper's policy is %s", got)
		}
		if _, more := o.Pulls.Next("build", failed); more != (failed < 2) {
			t.Errorf("after %d failures there are more policies: %v", failed, more)
		}
	}
	if _, more := (pod.Pulls{}).Next("build", 0); more {
		t.Error("a container without policies has a next one")
	}
}

func TestUsersOfJobs(t *testing.T) {
	id := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		name, user    string
		users, groups []string
		uid, gid      *int64
		note          string
	}{
		{"none", "", nil, nil, nil, nil, ""},
		{"user", "1000", nil, nil, id(1000), nil, ""},
		{"user and group", "1000:2000", nil, nil, id(1000), id(2000), ""},
		{"group alone", ":2000", nil, nil, nil, id(2000), ""},
		{"by variable", "$U", nil, nil, id(1234), nil, ""},
		{"listed", "1000", []string{"999", "1000"}, nil, id(1000), nil, ""},
		{"not listed", "1001", []string{"999", "1000"}, nil, nil, nil, `user "1001" that the job names for container build is not used: the configuration allows 999, 1000`},
		{"root", "0", nil, nil, nil, nil, `user "0" that the job names for container build is not used: the configuration has to list 0`},
		{"root in disguise", "000", []string{"1000"}, nil, nil, nil, `"000"`},
		{"root listed", "0:0", []string{"0"}, []string{"0"}, id(0), id(0), ""},
		{"root group", "1000:0", nil, nil, id(1000), nil, `group "0"`},
		{"name", "nobody", nil, nil, nil, nil, "not a number"},
		{"negative", "-1", nil, nil, nil, nil, "not a number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := built(t, func(p *pod.Plan) {
				p.Variables = variables("U", "1234")
				p.Job.Image.Options.Kubernetes.User = job.UserID(test.user)
				p.Settings.AllowedUsers, p.Settings.AllowedGroups = test.users, test.groups
			})
			context := container(t, o, "build").SecurityContext
			if diff := cmp.Diff([]*int64{test.uid, test.gid}, []*int64{context.RunAsUser, context.RunAsGroup}); diff != "" {
				t.Error(diff)
			}
			if notes := strings.Join(o.Notes, "\n"); !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
			if helper := container(t, o, "helper").SecurityContext; helper.RunAsUser != nil || helper.RunAsGroup != nil {
				t.Error("the helper runs as the job's user")
			}
		})
	}
}

// The whole Pod of a job that uses all that is here.
func TestImagesGolden(t *testing.T) {
	o := built(t, func(p *pod.Plan) {
		p.Variables = variables("FF_KUBERNETES_HONOR_ENTRYPOINT", "true", "CI_REGISTRY_IMAGE", "registry.example.com/group/app", "CI_RUNNER_VERSION", "19.4.0")
		p.Job.Image = job.Image{Name: "registry.example.com/group/app:1", PullPolicies: []string{settings.PullAlways}}
		p.Job.Image.Options.Kubernetes.User = "1000:1000"
		p.Settings.AllowedPullPolicies = []string{settings.PullIfNotPresent, settings.PullAlways}
		p.Settings.HelperImage = ""
		p.KeeperMark = "/driver/build.keeper"
		p.Owner = "somebody"
		p.Logins = registry.Logins{
			{Name: "registry.example.com", Username: "u", Password: "not-for-the-pod"},
			{Name: "other.example.com", Username: "unused", Password: "unused"},
		}
	})
	if len(o.Secrets) != 1 {
		t.Fatalf("%d Secrets, want 1", len(o.Secrets))
	}
	goldenYAML(t, "testdata/images.yaml", o.Pod, o.Secrets[0])
	text, err := yaml.Marshal(o.Pod)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"not-for-the-pod", base64.StdEncoding.EncodeToString([]byte("u:not-for-the-pod"))} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the Pod shows a password:\n%s", text)
		}
	}
}

func TestPullSecrets(t *testing.T) {
	logins := registry.Logins{{Name: "docker.io", Username: "u", Password: "p"}}
	for _, test := range []struct {
		name    string
		change  func(*pod.Plan)
		refs    int
		secrets int
	}{
		{"the operator's", func(*pod.Plan) {}, 1, 0},
		{"both", func(p *pod.Plan) { p.Logins = logins }, 2, 1},
		{"the job's", func(p *pod.Plan) { p.Logins, p.Settings.ImagePullSecrets = logins, nil }, 1, 1},
		{"the service account's", func(p *pod.Plan) { p.Logins, p.Settings.UseServiceAccountImagePullSecrets = logins, true }, 0, 0},
	} {
		o := built(t, test.change)
		if len(o.Pod.Spec.ImagePullSecrets) != test.refs || len(o.Secrets) != test.secrets {
			t.Errorf("%s: %d names and %d Secrets, want %d and %d", test.name, len(o.Pod.Spec.ImagePullSecrets), len(o.Secrets), test.refs, test.secrets)
		}
	}
}

// Kubernetes must not read the keeper's own program as a template.
func TestKeeperIsHandedOverLiterally(t *testing.T) {
	o := built(t, func(p *pod.Plan) { p.Keeper = []string{"sh", "-c", `echo $$ "$1" $(date)`, "keeper"} })
	want := []string{"sh", "-c", `echo $$$$ "$$1" $$(date)`, "keeper", "build"}
	if diff := cmp.Diff(want, container(t, o, "build").Command); diff != "" {
		t.Error(diff)
	}
}

// Entrypoints of the job's image count where the flag says so, and then run
// with the keeper as their arguments.
func TestEntrypoint(t *testing.T) {
	for value, honored := range map[string]bool{"": false, "false": false, "0": false, "nonsense": false, "true": true, "1": true} {
		o := built(t, func(p *pod.Plan) {
			p.Variables, p.KeeperMark = variables("FF_KUBERNETES_HONOR_ENTRYPOINT", value), "/driver/build.keeper"
		})
		build, helper := container(t, o, "build"), container(t, o, "helper")
		if diff := cmp.Diff([]string{"keep", "helper"}, helper.Command); diff != "" {
			t.Errorf("%q: the helper's command: %s", value, diff)
		}
		if honored != (len(build.Command) == 0 && slices.Equal(build.Args, []string{"keep", "build", "/driver/build.keeper"}) && build.StartupProbe != nil) {
			t.Errorf("%q: command %q, arguments %q, probe %v", value, build.Command, build.Args, build.StartupProbe)
		}
		if !honored && (!slices.Equal(build.Command, []string{"keep", "build"}) || len(build.Args) > 0 || build.StartupProbe != nil) {
			t.Errorf("%q: command %q, arguments %q, probe %v", value, build.Command, build.Args, build.StartupProbe)
		}
	}
}
