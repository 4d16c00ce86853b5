package runner

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/build"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/config"
	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

func handedOver(t *testing.T) (data []byte, j *job.Job) {
	t.Helper()
	data, err := os.ReadFile("testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	j = &job.Job{}
	if err := decoder.Decode(j); err != nil {
		t.Fatal(err)
	}
	return data, j
}

// TestResponseHasEveryField holds the payload against a file with the fields
// that GitLab Runner 19.4 writes: none is missing and none is too much.
func TestResponseHasEveryField(t *testing.T) {
	data, j := handedOver(t)
	written, err := Response(build.New(&config.Runner{}, j, 0))
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	for text, into := range map[*any][]byte{&want: data, &got: written} {
		if err := json.Unmarshal(into, text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response.json (-want +got):\n%s", diff)
	}
}

// TestEnvironmentHasEveryVariable holds the whole environment of a driver
// against what GitLab Runner 19.4 gives.
func TestEnvironmentHasEveryVariable(t *testing.T) {
	_, j := handedOver(t)
	b := build.New(&config.Runner{Token: "glrt-0123456789abc", Environment: []string{"ORBIT=low $FUEL"}}, j, 2)
	if err := b.Start(build.Dirs{BuildsDir: "/builds", CacheDir: "/cache"}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"TMPDIR": "/tmp/x", "JOB_RESPONSE_FILE": "/tmp/x/response.json", "BUILD_EXIT_CODE_FILE": "/tmp/x/build_exit_code",
		"BUILD_FAILURE_EXIT_CODE": "1", "SYSTEM_FAILURE_EXIT_CODE": "2",
	}
	for key, value := range map[string]string{
		"CI_BUILDS_DIR": "/builds", "CI_PROJECT_DIR": "/builds/space/rocket", "RUNNER_TEMP_PROJECT_DIR": "/builds/space/rocket.tmp",
		"CI_CONCURRENT_ID": "2", "CI_CONCURRENT_PROJECT_ID": "2", "CI_JOB_IMAGE": "builder:2", "CI_JOB_STATUS": "running",
		"CI_JOB_TIMEOUT": "1800", "CI_RUNNER_SHORT_TOKEN": "012345678", "CI_SERVER": "yes", "CI_SHARED_ENVIRONMENT": "true",
		"CI_RUNNER_VERSION": "19.4.0", "CI_RUNNER_REVISION": "fc1f1862", "CI_RUNNER_EXECUTABLE_ARCH": "linux/" + runtime.GOARCH,
		"CI_JOB_ID": "4711", "FUEL": "hydrogen", "ORBIT": "low hydrogen",
		"MANUAL": "line $FUEL", "PLAN": "4711 by /builds/space/rocket.tmp/MANUAL",
		"CI_JOB_SERVICES": `[{"name":"db:1","alias":"db","entrypoint":null,"command":["serve"],"variables":{"DB_FUEL":"from hydrogen"}},` +
			`{"name":"queue:3","alias":"","entrypoint":null,"command":null}]`,
	} {
		want[EnvPrefix+key] = value
	}
	on := strings.Fields("FF_ENABLE_JOB_INPUTS_INTERPOLATION FF_MASK_ALL_DEFAULT_TOKENS FF_SECRET_RESOLVING_FAILS_IF_MISSING " +
		"FF_TIMESTAMPS FF_USE_ADAPTIVE_REQUEST_CONCURRENCY FF_USE_DIRECT_DOWNLOAD FF_USE_DOCKER_AUTOSCALER_DIAL_STDIO " +
		"FF_USE_EXPONENTIAL_BACKOFF_STAGE_RETRY FF_USE_FASTZIP FF_USE_GITALY_CORRELATION_ID FF_USE_GIT_BUNDLE_URIS FF_USE_POD_ACTIVE_DEADLINE_SECONDS")
	got, flags := map[string]string{}, 0
	for _, e := range append(Own("/tmp/x"), JobEnvironment(b)...) {
		key, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(key, EnvPrefix+"FF_") {
			flags++
			if isOn := strings.Contains(" "+strings.Join(on, " ")+" ", " "+strings.TrimPrefix(key, EnvPrefix)+" "); isOn != (value == "true") {
				t.Errorf("%s is %s", key, value)
			}
			continue
		}
		got[key] = value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if flags != 52 {
		t.Errorf("%d feature flags, want 52", flags)
	}
}

func TestFlagsOfConfigTOMLCountBeforeTheJobs(t *testing.T) {
	_, j := handedOver(t)
	j.Variables = job.Variables{{Key: "FF_USE_FASTZIP", Value: "true"}, {Key: "FF_TIMESTAMPS", Value: "false"}}
	b := build.New(&config.Runner{FeatureFlags: map[string]bool{"FF_USE_FASTZIP": false}}, j, 0)
	for _, e := range JobEnvironment(b) {
		switch e {
		case EnvPrefix + "FF_USE_FASTZIP=true", EnvPrefix + "FF_TIMESTAMPS=true":
			t.Errorf("the environment has %s", e)
		}
	}
}
