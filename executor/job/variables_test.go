package job_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/job"
)

// scene is a job with every kind of variable, and what the runner makes of them
// in the environment of a stage.
func scene(t *testing.T) (job.Job, job.Environment) {
	t.Helper()
	env := job.Environment{
		"PATH":                               "/bin", // the host's own
		"CUSTOM_ENV_PUBLIC":                  "seen p$$w(d)$(HOME)",
		"CUSTOM_ENV_MASKED":                  "hidden",
		"CUSTOM_ENV_FILE":                    "content",
		"CUSTOM_ENV_PRIVATE_FILE":            "content",
		"CUSTOM_ENV_TWICE":                   "second",
		"CUSTOM_ENV_COVERED":                 "private",
		"CUSTOM_ENV_COVERED_RAW":             "private",
		"CUSTOM_ENV_COVERED_FILE":            "private",
		"CUSTOM_ENV_FROM_RUNNER":             "environment of the runner",
		"CUSTOM_ENV_CI_SERVER_TLS_CA_FILE":   "-----BEGIN CERTIFICATE-----",
		"CUSTOM_ENV_RUNNER_TEMP_PROJECT_DIR": "/builds/a/b.tmp",
		"CUSTOM_ENV_CI_SHARED_ENVIRONMENT":   "true",
		"CUSTOM_ENV_FF_TIMESTAMPS":           "true",
		"CUSTOM_ENV_FF_MINE":                 "my own",
		"CUSTOM_ENV_VAULT":                   "fetched",
		"CUSTOM_ENV_VAULT_FILE":              "fetched",
		"CUSTOM_ENV_VAULT_OVER_PUBLIC":       "fetched",
		"CUSTOM_ENV_CI_JOB_SERVICES":         `[{"name":"redis"}]`,
	}
	j, err := job.Parse([]byte(`{"id": 1, "variables": [
		{"key": "PUBLIC", "value": "unexpanded", "public": true},
		{"key": "MASKED", "value": "hidden", "masked": true},
		{"key": "FILE", "value": "content", "public": true, "file": true},
		{"key": "PRIVATE_FILE", "value": "content", "file": true},
		{"key": "TWICE", "value": "first", "public": true},
		{"key": "TWICE", "value": "second", "public": true},
		{"key": "COVERED", "value": "open $PUBLIC $FILE", "public": true},
		{"key": "COVERED", "value": "private"},
		{"key": "COVERED_RAW", "value": "open $PUBLIC", "public": true, "raw": true},
		{"key": "COVERED_RAW", "value": "private"},
		{"key": "COVERED_FILE", "value": "content", "public": true, "file": true},
		{"key": "COVERED_FILE", "value": "private"},
		{"key": "CI_SHARED_ENVIRONMENT", "value": "false"},
		{"key": "FF_TIMESTAMPS", "value": "false"},
		{"key": "FF_MINE", "value": "my own"},
		{"key": "VAULT_OVER_PUBLIC", "value": "open", "public": true}],
		"secrets": {"VAULT": {"file": false, "vault": {}}, "VAULT_FILE": {}, "VAULT_OVER_PUBLIC": {"file": false}}}`), env)
	if err != nil {
		t.Fatal(err)
	}
	return j, env
}

func TestOpenVariables(t *testing.T) {
	j, env := scene(t)
	got := map[string]string{}
	for _, v := range j.OpenVariables(env) {
		got[v.Key] = v.Value
	}
	want := map[string]string{
		"PUBLIC":                  "seen p$$w(d)$(HOME)",
		"FILE":                    "/builds/a/b.tmp/FILE",
		"TWICE":                   "second",
		"COVERED":                 "open seen p$$w(d)$(HOME) /builds/a/b.tmp/FILE",
		"COVERED_RAW":             "open $PUBLIC",
		"COVERED_FILE":            "/builds/a/b.tmp/COVERED_FILE",
		"FROM_RUNNER":             "environment of the runner",
		"CI_SERVER_TLS_CA_FILE":   "/builds/a/b.tmp/CI_SERVER_TLS_CA_FILE",
		"RUNNER_TEMP_PROJECT_DIR": "/builds/a/b.tmp",
		"CI_SHARED_ENVIRONMENT":   "true",
		"FF_TIMESTAMPS":           "true",
		"VAULT_OVER_PUBLIC":       "open",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what services see (-want +got):\n%s", diff)
	}
}

func TestOwnVariables(t *testing.T) {
	j, env := scene(t)
	got := j.OwnVariables(env, []job.Variable{
		{Key: "A", Value: "$MASKED-$$x-$1-${NONE}"},
		{Key: "B", Value: "$A and ${FILE} and $PRIVATE_FILE and $VAULT_FILE and $VAULT"},
		{Key: "RAW", Value: "$MASKED", Raw: true},
		{Key: "PUBLIC", Value: "own"},
		{Key: "C", Value: "$PUBLIC $OWN_FILE"},
		{Key: "OWN_FILE", Value: "content", File: true},
		{Key: "TWICE", Value: "one"},
		{Key: "TWICE", Value: "two"},
	})
	want := map[string]string{
		"A":        "hidden-$x--",
		"B":        "$MASKED-$$x-$1-${NONE} and /builds/a/b.tmp/FILE and /builds/a/b.tmp/PRIVATE_FILE and /builds/a/b.tmp/VAULT_FILE and fetched",
		"RAW":      "$MASKED",
		"PUBLIC":   "own",
		"C":        "own /builds/a/b.tmp/OWN_FILE",
		"OWN_FILE": "/builds/a/b.tmp/OWN_FILE",
		"TWICE":    "two",
	}
	values := map[string]string{}
	for _, v := range got {
		values[v.Key] = v.Value
	}
	if diff := cmp.Diff(want, values); diff != "" || len(got) != len(want) {
		t.Errorf("%d variables (-want +got):\n%s", len(got), diff)
	}
}

func TestAliases(t *testing.T) {
	for text, want := range map[string][]string{
		"":               {},
		"db":             {"db"},
		"db,cache":       {"db", "cache"},
		" db , cache\tx": {"db", "cache", "x"},
	} {
		if diff := cmp.Diff(want, job.Image{Alias: text}.Aliases()); diff != "" {
			t.Errorf("aliases of %q (-want +got):\n%s", text, diff)
		}
	}
}
