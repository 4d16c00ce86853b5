package e2e

// Sessions that need more than a folder.
const (
	sessionOfAJob        = "a job that runs"
	sessionOfLocaltenant = "localtenant"
)

// sessions are all commands that are run as the documents have them.
func sessions() map[string]session {
	return map[string]session{
		"quick start":        quickStart(),
		"by hand":            byHandAsDocumented(),
		"installation":       installed(),
		"migration":          migrated(),
		"warm nodes":         keptWarm(),
		"localrunner":        withoutGitLab(),
		sessionOfAJob:        lookedAt(),
		sessionOfLocaltenant: ownTenant(),
	}
}

func quickStart() session {
	return session{
		parts: []part{blocks("docs/quick-start.md#quick-start")},
		instead: append(sharedTenant(),
			substitution{"localtenant up", "localtenant --name {tenant} up"},
			substitution{"localtenant down", ": the tests go on with their tenant"}),
		says: []reaction{
			{"localtenant up --ceiling 2 --pods-per-node 1", "is up already"},
			{"tenant-executor prepare --job job.json", "runs on node"},
			{"tenant-executor run --job job.json hello.sh build_script", "hello from job-1-"},
		},
	}
}

func byHandAsDocumented() session {
	return session{
		parts:   []part{blocks("README.md#debug-a-stage-by-hand")},
		instead: append(sharedTenant(), substitution{"localtenant up", "localtenant --name {tenant} up"}),
		says: []reaction{
			{"tenant-executor config  --job job.json", `"builds_dir":"/builds"`},
			{"tenant-executor prepare --job job.json", "runs on node"},
			{"tenant-executor run --job job.json look.sh build_script", "uid=0(root)"},
			{"tenant-executor run --job job.json look.sh get_sources", "/builds"},
		},
	}
}

// sharedTenant is the tests' own, and a state folder that only this session has.
func sharedTenant() []substitution {
	return []substitution{{
		"localtenant driver-config > driver.toml",
		`localtenant --name {tenant} driver-config > driver.toml; printf '[state]\ndir = "{dir}/state"\n' >> driver.toml`,
	}}
}

// documentedCluster makes the configuration of the installation one for the
// tests' tenant; more is TOML that it has in addition.
func documentedCluster(more string) []substitution {
	return []substitution{
		{`"my-cluster"`, `"{tenant}"`},
		{"/etc/tenant-executor/kcp.kubeconfig", "{kcp}"},
		{"/etc/tenant-executor/", "{access}/"},
		{`namespace = "ci"`, `namespace = "ci"
image = "{registry}/localtenant/busybox:1"
helper_image = "{registry}/localtenant/helper:1"
[state]
dir = "{dir}/state"
` + more},
	}
}

const installation = "docs/installation.md#3-the-configuration"

// runnerFile is the runner's config.toml, as examples/runner-config.toml has it.
const runnerFile = `concurrent = 2
[[runners]]
name = "documented"
url = "{gitlab}"
token = "glrt-t3_documentstoken"
executor = "custom"
safe_directory_checkout = true
[runners.custom_build_dir]
enabled = true
[runners.custom]
config_exec = "{bin}/tenant-executor"
config_args = ["config", "--config", "{dir}/driver.toml"]
prepare_exec = "{bin}/tenant-executor"
prepare_args = ["prepare", "--config", "{dir}/driver.toml"]
run_exec = "{bin}/tenant-executor"
run_args = ["run", "--config", "{dir}/driver.toml"]
cleanup_exec = "{bin}/tenant-executor"
cleanup_args = ["cleanup", "--config", "{dir}/driver.toml"]
`

func installed() session {
	return session{
		parts:  []part{blocks("docs/installation.md#2-who-the-driver-is"), blocks("docs/installation.md#5-the-first-job")},
		config: []string{installation},
		files:  []file{{"config.toml", runnerFile}},
		instead: append(documentedCluster(""),
			substitution{"tenant-executor doctor", "tenant-executor doctor --runner-config config.toml"},
			substitution{"/tmp/job.json", "job.json"}),
		says: []reaction{
			{"kubectl apply -f examples/rbac.yaml", "clusterrole.rbac.authorization.k8s.io/tenant-executor-jobs"},
			{"tenant-executor doctor", "ok       rights "},
			{"tenant-executor doctor --probe", "ok       probe-gitlab "},
			{"tenant-executor prepare --job /tmp/job.json", "runs on node"},
		},
	}
}

// lookedAt has a job with the service redis, whose runner and driver were killed
// while its script runs. The script prints "begun", waits until /builds/go is there,
// and prints "ended".
func lookedAt() session {
	return session{
		parts: []part{
			blocks("README.md#look-at-a-job-that-runs"),
			blocks("docs/observing.md#for-a-look"), blocks("docs/observing.md#a-log-on-the-host"),
			prose("docs/troubleshooting.md#why-no-node-takes-the-pod"),
			prose("docs/troubleshooting.md#troubleshooting"), prose("docs/troubleshooting.md#in-the-job-log"),
		},
		config: []string{installation, "docs/observing.md#prometheus", "docs/observing.md#a-log-on-the-host"},
		files:  []file{{"config.toml", runnerFile}},
		instead: append(documentedCluster(""),
			substitution{"[tenant]\n", "[tenant]\nceiling = 2\n"}, // not the gateway's default here
			substitution{"/var/lib/prometheus/node-exporter/", "{dir}/"},
			substitution{"/var/log/tenant-executor/", "{dir}/"},
			substitution{"4711", "{job}"}, substitution{"JOB", "{job}"},
			substitution{"SHORT_TOKEN", "{runner}"}, substitution{"TOKEN", "{runner}"},
			substitution{"tenant-executor doctor", "tenant-executor doctor --runner-config config.toml"},
			substitution{"--html jobs.html\n", "--html jobs.html; grep '</html>' jobs.html\n"},
		),
		types: []reaction{
			{"tenant-executor shell 4711", "hostname; touch /builds/go; exit\n"},
			{"tenant-executor shell JOB", "ls /builds; exit\n"},
			{"tenant-executor shell JOB -c redis", "redis-cli ping; exit\n"},
		},
		says: []reaction{
			{"tenant-executor ps", "build_script"},
			{"tenant-executor events 4711", "Scheduled"},
			{"tenant-executor shell 4711", "\njob-{job}-"},
			{"tenant-executor logs 4711 -f", "\nended\nStage build_script-"},
			{"tenant-executor attach 4711", "\nended\n"},
			{"tenant-executor logs 4711 -c redis", "Ready to accept connections"},
			{"tenant-executor reap --runner SHORT_TOKEN --dry-run", "runner gone"},
			{"tenant-executor stats", "1 attempt at 1 job,"},
			{"tenant-executor stats --last 20 --jobs", "\n{job} "},
			{"tenant-executor stats --html jobs.html", "</html>"},
			{"jq 'select(.job == 4711)' /var/log/tenant-executor/jobs.log", `"step": "prepare"`},
			{"tenant-executor doctor", "ok       outside "},
			{"tenant-executor events JOB", "Scheduled"},
			{"tenant-executor logs JOB -f", "has ended well"},
			{"tenant-executor shell JOB", "\ngo    root\n"},
			{"tenant-executor logs JOB -c redis", "Ready to accept connections"},
			{"tenant-executor shell JOB -c redis", "PONG\n"},
			{"kubectl describe node", "job-{job}-"},
			{"tenant-executor reap --runner TOKEN", "deleted"},
		},
	}
}

func migrated() session {
	return session{
		parts: []part{blocks("docs/migration.md#from-the-kubernetes-executor")},
		files: []file{{"config.toml", `[[runners]]
name = "my runner"
url = "{gitlab}"
token = "glrt-t3_documentstoken"
executor = "kubernetes"
[runners.kubernetes]
host = "https://127.0.0.1:36443"
ca_file = "/etc/tenant-executor/ca.crt"
cert_file = "/etc/tenant-executor/client.crt"
key_file = "/etc/tenant-executor/client.key"
image = "debian:13"
cpu_request = "1"
`}},
		// Without a file it is the one of a runner that is installed.
		instead: []substitution{
			{"tenant-executor migrate\n", "tenant-executor migrate --config-file config.toml\n"},
			{"--write driver.toml", "--write driver.toml; cat driver.toml"},
		},
		says: []reaction{
			{"tenant-executor migrate", "cpu_request  carried "},
			{`tenant-executor migrate --config-file config.toml --runner "my runner" --write driver.toml`, "as cluster.key_file\n# Configuration of tenant-executor for the runner"},
		},
	}
}

func keptWarm() session {
	return session{
		parts:   []part{blocks("docs/scaling.md#warm-nodes")},
		config:  []string{installation},
		instead: documentedCluster("[warm]\npause_pod_image = \"{registry}/localtenant/pause:1\"\n[[warm.policy]]\nidle_count = 2"),
		says:    []reaction{{"tenant-executor warm --once --dry-run", "create placeholder-warm-0"}},
	}
}

func withoutGitLab() session {
	const readme = "examples/localrunner/README.md"
	return session{
		parts:  []part{blocks(readme + "#localrunner"), blocks(readme + "#one-stage-by-hand")},
		config: []string{installation},
		files:  []file{{"config.toml", runnerFile}, {"ci.yml", "test:\n  script: [echo the pipeline runs]\n"}},
		instead: append(documentedCluster(""),
			substitution{"ADDRESS", "{address}"},
			substitution{"/tmp/job", "{dir}/job"},
			// The next commands are those of another terminal.
			substitution{"--serve ci.yml", "--serve ci.yml >serves & until grep -q ^serving serves; do sleep 0.1; done"},
			substitution{"tenant-executor cleanup)", "tenant-executor cleanup); kill $!"},
		),
		says: []reaction{
			{"localrunner run --config config.toml --listen ADDRESS:0 ci.yml", "the pipeline runs"},
			{"(. /tmp/job/environment.sh; cd /tmp/job; tenant-executor prepare)", "runs on node"},
			{"(. /tmp/job/environment.sh; cd /tmp/job; tenant-executor run scripts/01-prepare_script prepare_script)", "Running on job-"},
			{"(. /tmp/job/environment.sh; cd /tmp/job; tenant-executor run scripts/02-get_sources get_sources)", "Checking out"},
		},
	}
}

func ownTenant() session {
	const readme = "examples/localtenant/README.md"
	return session{
		parts: []part{
			blocks(readme + "#start"), prose(readme + "#start"),
			blocks(readme + "#the-kcp-side-and-the-mount"), prose(readme + "#the-kcp-side-and-the-mount"),
			blocks(readme + "#the-gateway"), prose(readme + "#status-as-json"), blocks(readme + "#faults"), blocks(readme + "#end"),
		},
		instead: []substitution{
			{"localtenant ", "localtenant --name {tenant}-own "},
			{"/demo/", "/{tenant}-own/"}, {"cluster demo", "cluster {tenant}-own"},
			{"node add", "node add one"}, {"NODE", "one"},
		},
		says: []reaction{
			{"localtenant up", "is up after"},
			{"localtenant status", "0 there"},
			{"kubectl get namespaces", "\nci "},
			{"localtenant --help", "The cluster:"},
			{"kubectl --kubeconfig /var/lib/localtenant/demo/kcp.kubeconfig get cluster demo", "https://127.0.0.1:"},
			{"localtenant status --output json", `"bridgeAddress"`},
			{"localtenant gateway show", "ceiling"},
			{"localtenant gateway set --ceiling 2 --pods-per-node 1 --hold 30s --boot-time 0s", "ceiling 2, pods-per-node 1, hold 30s, boot time 0s"},
			{"localtenant gateway set --paused", "paused"},
			{"localtenant gateway show --output json", "{\n  \"ceiling\": 2,\n"},
			{"localtenant node add", "one ready after"},
			{"localtenant node list", "one"},
			{"localtenant node cut NODE", "one: cut off"},
			{"localtenant node kill NODE", "one: killed"},
			{"localtenant node remove NODE", "one removed"},
			{"localtenant apiserver kill", "apiserver is down"},
			{"localtenant apiserver start --port new", "apiserver is ready at"},
			{"localtenant kcp kill", "not running"},
			{"localtenant kcp start", "Cluster {tenant}-own"},
			{"localtenant registry set --delay 5s", "waits 5s before each answer"},
			{"localtenant registry set --rate-limited --repositories 'localtenant/redis'", "for localtenant/redis alone"},
			{"localtenant fault show", "the next 2 boots fail"},
			{"localtenant fault clear", "none"},
		},
	}
}

// runsElsewhere are the commands that no session runs.
func runsElsewhere() []elsewhere {
	return []elsewhere{
		{"make demo", "takes a cluster of its own up and down; the project's check runs it", ".ci/run", "make demo"},
		{"make test", "runs this test", ".ci/run", "make test"},
		{"make deps", "comes before these tests", "Makefile", "e2e: deps people"},
		{"make build", "comes before these tests", "Makefile", "deps: build"},
		{"make release", "make test builds the release beside these tests", "Makefile", "release-check: release"},
		{"make vulnerabilities", "make test runs it beside these tests", "Makefile", "$(MAKE) vulnerabilities release-check"},
		{"make update", "what it writes is compared in a copy of the repository", "examples/release/check.sh", "make -s -C \"$again/src\" update"},
		{"make job-log", "has the tests write what they compare otherwise", "examples/e2e/joblog_test.go", "func recorded("},
		{"make bench", "measures for ten minutes on a machine that does nothing else", "", ""},
		{"dpkg -i bin/release/tenant-executor_*_amd64.deb", "the check of the release installs the package of this machine", "examples/release/check.sh", `dpkg -i "$package"`},
		{"systemctl edit gitlab-runner", "opens an editor, on a machine with systemd and a runner; the test of traces sets the variable", "cmd/tenant-executor/traces_test.go", "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"tenant-executor release JOB", "takes a Pod that is kept", "cmd/tenant-executor/hold_test.go", `h.stage("release", "4711")`},
		{"kubectl patch cluster demo --subresource status --type merge -p …", "Debian's kubectl is too old for it; the tests of the kcp side patch the same", "examples/localtenant/real_kcp_test.go", `{"status":{"url":"https://elsewhere"}}`},
		{"go test ./...", "make test runs it in that folder", "Makefile", "$(GO) test -C $(LOCALTENANT) -race ./..."},
		{"go test -tags localtenant -run Real -v .", "make test runs it in that folder", "Makefile", "$(GO) test -C $(LOCALTENANT) -tags localtenant -count 1 -timeout 20m -run Real ."},
	}
}
