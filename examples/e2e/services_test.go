//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/runner"
	"github.com/socialweb-computer/tenant-executor/examples/testbed"
)

// service is a service of an image of the registry. Variables are written as
// NAME=value.
func service(image, alias string, variables ...string) job.Image {
	s := job.Image{Name: bed.Image(image), Alias: alias}
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		s.Variables = append(s.Variables, job.Variable{Key: name, Value: value})
	}
	return s
}

// served is a job with services that clones nothing.
func served(image string, services []job.Image, script ...string) *job.Job {
	j := testbed.WithoutSources(bed.Job(script...))
	j.Image.Name, j.Services = bed.Image(image), services
	return j
}

// A service is reached by each of its names, has its variables as they were
// meant, and shares the builds volume. Secrets are in no Pod, and go with it.
func TestServiceIsReachedByItsNames(t *testing.T) {
	const password = `pa$$w(d)$(HOME)` + "`x` 'y'"
	web := service("busybox", "web,www.example.test web2", "HEALTHCHECK_TCP_PORT=8080", "SHOWN=$PASSWORD", "RAW=$PASSWORD")
	web.Variables[2].Raw = true
	web.Entrypoint = []string{"sh", "-c"}
	web.Command = []string{`mkdir /w; printf '%s|%s|%s' "$SHOWN" "$RAW" "$PUBLIC" >/w/index.html; printf '%s' "${PASSWORD-hidden}" >/w/hidden; echo from-the-service >/builds/shared; exec httpd -f -p 8080 -h /w`}
	gate := "service-names"
	j := served("busybox", []job.Image{web},
		"for name in web www.example.test web2; do wget -qO- http://$name:8080/; echo; done",
		"wget -qO- http://web:8080/hidden; echo", "cat /builds/shared", bed.Gate(gate))
	j.Variables = append(j.Variables,
		job.Variable{Key: "PASSWORD", Value: password, Raw: true},
		job.Variable{Key: "PUBLIC", Value: "for all", Public: true})
	wait := start(t, bed.Config, j, runner.Options{})
	defer bed.Open(gate)
	if err := bed.Arrived(limited(t, jobLimit), gate); err != nil {
		t.Error(err)
	}
	client := admin(t)
	pod, err := podOf(limited(t, time.Minute), client, j.ID)
	if err != nil || pod == nil {
		t.Fatalf("the Pod: %v, %v", pod, err)
	}
	if strings.Contains(pod.String(), "pa$$w") {
		t.Errorf("the Pod shows the password:\n%s", pod)
	}
	bed.Open(gate)
	out := wait()
	wantPassed(t, out)
	line := password + "|$PASSWORD|for all\n"
	if n := strings.Count(plain(out.Log), line); n != 3 {
		t.Errorf("the service answered %q %d times, want 3", line, n)
	}
	wantLog(t, out, "hidden\n", "from-the-service")
	wantNoPods(t, j.ID)
	if err := testbed.Until(context.Background(), "the Secrets to go with the Pod", time.Minute, func(ctx context.Context) (bool, error) {
		list, err := client.Secrets(testbed.Namespace).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("tenant-executor.socialweb.computer/job-id=%d", j.ID)})
		return err == nil && len(list.Items) == 0, err
	}); err != nil {
		t.Error(err)
	}
}

func TestServiceRedis(t *testing.T) {
	// The client is the shell, since the image of redis has no bash, which the
	// runner's scripts need.
	j := served("debian", []job.Image{service("redis", "cache", "HEALTHCHECK_TCP_PORT=6379")},
		"exec 3<>/dev/tcp/cache/6379",
		`printf 'SET greeting hello\r\nGET greeting\r\n' >&3`,
		"for n in 1 2 3; do read -r line <&3; echo \"redis says $line\"; done")
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "redis says +OK", "redis says $5", "redis says hello")
}

// Services reach each other by their names as well.
func TestServicePostgres(t *testing.T) {
	client := service("postgres", "client", "PGPASSWORD=$SECRET")
	client.Entrypoint = []string{"sh", "-c"}
	client.Command = []string{`until psql -h db -U postgres app -tAc "select 'it is ' || 6*7" >/builds/answer.new; do sleep 1; done; mv /builds/answer.new /builds/answer`}
	j := served("busybox", []job.Image{service("postgres", "db", "HEALTHCHECK_TCP_PORT=5432", "POSTGRES_PASSWORD=$SECRET", "POSTGRES_DB=app"), client},
		"until test -e /builds/answer; do sleep 0.2; done; cat /builds/answer")
	j.Variables = append(j.Variables, job.Variable{Key: "SECRET", Value: "se$cret", Raw: true, Masked: true})
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "it is 42")
}

// A service of the configuration is there for every job.
func TestServiceOfTheConfiguration(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, fmt.Sprintf(`
[[kubernetes.services]]
name = %q
alias = "probe-$CI_PIPELINE_ID"
command = ["one", "two"]
environment = ["HEALTHCHECK_TCP_PORT=8080", "GREETING=hello $CI_PROJECT_PATH"]
`, bed.Image("service-probe")))
	if err != nil {
		t.Fatal(err)
	}
	out := runJobWith(t, config, served("busybox", nil, "wget -qO- http://probe-1:8080/env/GREETING; echo; wget -qO- http://probe-1:8080/args"), runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "hello "+testbed.Project, `["one","two"]`)
}

// What becomes of a service does not fail the job; the log tells it once, with
// what the service said last.
func TestServiceThatEnds(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	replaceInFile(t, config, "pull_policy =", "service_memory_limit_overwrite_max_allowed = \"100Mi\"\npull_policy =")
	failing := service("busybox", "failing")
	failing.Entrypoint = []string{"/no/such/program"}
	for _, test := range []struct {
		name     string
		services []job.Image
		says     []string
	}{
		{"mid-job", []job.Image{service("service-probe", "probe", "PROBE_DIE_AFTER=2s", "PROBE_EXIT_CODE=7")},
			[]string{"Service ", "has ended: Error, exit code 7. The job goes on without it.", "] service-probe: ends by itself with exit code 7"}},
		{"at once and well", []job.Image{service("service-probe", "probe", "PROBE_DIE_AFTER=0s", "PROBE_EXIT_CODE=0")},
			[]string{"has ended, with exit code 0"}},
		{"without a program", []job.Image{failing}, []string{"has ended: it could not be started"}},
		{"for want of memory", []job.Image{service("service-probe", "probe", "PROBE_MEMORY=80", "PROBE_MEMORY_AFTER=1s", "KUBERNETES_SERVICE_MEMORY_LIMIT=40Mi")},
			[]string{"service_memory_limit is 40Mi", "has ended: it used more memory than its limit"}},
		{"for its port", []job.Image{service("redis", "first", "HEALTHCHECK_TCP_PORT=6379"), service("redis", "second")},
			[]string{"has ended: Error, exit code 1", "Address already in use", "all containers of a job share one network", "The same port may be that of"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := runJobWith(t, config, served("busybox", test.services, "sleep 5; echo still here"), runner.Options{})
			wantPassed(t, out)
			wantLog(t, out, append(test.says, "still here")...)
			if n := strings.Count(out.Log, "has ended"); n != 1 {
				t.Errorf("the end was told %d times, want once", n)
			}
		})
	}
}

func TestServiceThatNeverAnswers(t *testing.T) {
	config, err := bed.WriteConfig(testbed.Namespace, "\n[wait]\nservices = \"2s\"\n")
	if err != nil {
		t.Fatal(err)
	}
	j := served("busybox", []job.Image{service("service-probe", "probe", "PROBE_PORT=0", "PROBE_LINES=3", "HEALTHCHECK_TCP_PORT=8080")}, "echo never")
	out := runJobWith(t, config, j, runner.Options{})
	if out.Status != runner.Failed || out.FailureReason != "script_failure" || out.Attempts != 1 {
		t.Errorf("ended with %s, %s after %d attempts; want one build failure", out.Status, out.FailureReason, out.Attempts)
	}
	wantLog(t, out, "no answer within 2 s from", "probe at port 8080", "] service-probe: line 3 of 3", "wait.services")
	wantNoPods(t, j.ID)
}

// With CI_DEBUG_SERVICES each line of a service is in the log once, in whichever
// stage: from the first, printed before any stage, to the last.
func TestServiceLogs(t *testing.T) {
	const lines = 400
	j := served("busybox", []job.Image{service("service-probe", "probe", fmt.Sprintf("PROBE_LINES=%d", lines), "PROBE_LINE_EVERY=10ms")},
		"printf begun; sleep 3; echo; echo done")
	testbed.AfterScript(j, "sleep 1")
	j.Variables = append(j.Variables, job.Variable{Key: "CI_DEBUG_SERVICES", Value: "true", Public: true})
	out := runJob(t, j, runner.Options{})
	wantPassed(t, out)
	wantLog(t, out, "begun\n", "service-probe: started")
	var got []string
	for _, found := range regexp.MustCompile(`\[service:[^\]]*-probe\] \S+ service-probe: line (\d+) of`).FindAllStringSubmatch(plain(out.Log), -1) {
		got = append(got, found[1])
	}
	var want []string
	for i := range lines {
		want = append(want, fmt.Sprint(i+1))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log shows lines %v; want 1 to %d, each once", got, lines)
	}
}
