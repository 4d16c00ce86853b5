package pods_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/kube/pods"
)

// read makes a Pod of two containers with a status as a cluster writes it.
func read(t *testing.T, node, status string) *corev1.Pod {
	t.Helper()
	pod := somePod("a")
	pod.Spec.NodeName = node
	if err := json.Unmarshal([]byte(status), &pod.Status); err != nil {
		t.Fatalf("status %s: %v", status, err)
	}
	return pod
}

func TestPhaseOf(t *testing.T) {
	t.Parallel()
	const running = `{"name":"helper","image":"helper:1","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}`
	tests := []struct {
		name, node, status string
		phase              pods.Phase
		detail             string
	}{
		{"new", "", `{"phase":"Pending"}`, pods.Unscheduled, ""},
		{"no node fits", "", `{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/0 nodes are available"}]}`,
			pods.Unscheduled, "Unschedulable: 0/0 nodes are available"},
		{"scheduled, kubelet silent", "n1", `{"phase":"Pending"}`, pods.Starting, ""},
		{"creating", "n1", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"waiting":{"reason":"ContainerCreating"}}},` + running + `]}`,
			pods.Starting, ""},
		{"initializing", "n1", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"waiting":{"reason":"PodInitializing"}}}]}`,
			pods.Starting, ""},
		{"pull fails for now", "n1", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"waiting":{"reason":"ErrImagePull","message":"i/o timeout"}}}]}`,
			pods.Starting, "ErrImagePull (container build): i/o timeout"},
		{"backing off without a message", "n1", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`,
			pods.Starting, "ImagePullBackOff (container build)"},
		{"pull of an init container fails for now", "n1", `{"phase":"Pending","initContainerStatuses":[{"name":"first","state":{"waiting":{"reason":"ErrImagePull","message":"i/o timeout"}}}],"containerStatuses":[{"name":"build","state":{"waiting":{"reason":"PodInitializing"}}}]}`,
			pods.Starting, "ErrImagePull (container first): i/o timeout"},
		{"an init container has failed", "n1", `{"phase":"Pending","initContainerStatuses":[{"name":"first","state":{"terminated":{"reason":"Error","exitCode":2}}}]}`,
			pods.Ended, "Error (container first): exit code 2"},
		{"an init container is done", "n1", `{"phase":"Running","initContainerStatuses":[{"name":"first","state":{"terminated":{"reason":"Completed","exitCode":0}}}],"containerStatuses":[{"name":"build","state":{"running":{}}},` + running + `]}`, pods.Running, ""},
		{"one of two runs", "n1", `{"phase":"Running","containerStatuses":[` + running + `]}`, pods.Starting, ""},
		{"phase Running without containers", "n1", `{"phase":"Running"}`, pods.Starting, ""},
		{"containers run, phase is behind", "n1", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"running":{}}},` + running + `]}`, pods.Starting, ""},
		{"all run", "n1", `{"phase":"Running","containerStatuses":[{"name":"build","state":{"running":{}}},` + running + `]}`, pods.Running, ""},
		{"one ended, phase is behind", "n1", `{"phase":"Running","containerStatuses":[{"name":"build","state":{"terminated":{"reason":"Completed","exitCode":0}}},` + running + `]}`,
			pods.Ended, "Completed (container build): exit code 0"},
		{"killed for memory", "n1", `{"phase":"Running","containerStatuses":[{"name":"build","state":{"terminated":{"reason":"OOMKilled","exitCode":137}}},` + running + `]}`,
			pods.Ended, "OOMKilled (container build): exit code 137"},
		{"evicted", "n1", `{"phase":"Failed","reason":"Evicted","message":"The node was low on resource: ephemeral-storage."}`,
			pods.Ended, "Evicted: The node was low on resource: ephemeral-storage."},
		{"evicted without a reason", "n1", `{"phase":"Failed","conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByPodGC","message":"node is gone"}]}`,
			pods.Ended, "DeletionByPodGC: node is gone"},
		{"deadline", "n1", `{"phase":"Failed","reason":"DeadlineExceeded","message":"Pod was active on the node longer than the specified deadline"}`,
			pods.Ended, "DeadlineExceeded: Pod was active on the node longer than the specified deadline"},
		{"failed before it had a node", "", `{"phase":"Failed","reason":"OutOfcpu"}`, pods.Ended, "OutOfcpu"},
		{"ended by itself", "n1", `{"phase":"Succeeded"}`, pods.Ended, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := pods.StateOf(read(t, test.node, test.status))
			if got.Phase != test.phase || got.Detail != test.detail || got.Node != test.node {
				t.Errorf("got  %s on %q, %q\nwant %s, %q", got.Phase, got.Node, got.Detail, test.phase, test.detail)
			}
		})
	}
}

func TestProblemsOfContainers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		state string
		want  pods.Kind
	}{
		{`{"waiting":{"reason":"InvalidImageName","message":"couldn't parse image name"}}`, pods.ImageInvalid},
		{`{"waiting":{"reason":"ErrImageNeverPull","message":"Container image is not present with pull policy of Never"}}`, pods.ImageAbsent},
		{`{"waiting":{"reason":"ErrImagePull","message":"rpc error: code = NotFound desc = failed to pull and unpack image: not found"}}`, pods.ImageMissing},
		{`{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image: ErrImagePull: manifest unknown"}}`, pods.ImageMissing},
		{`{"waiting":{"reason":"ErrImagePull","message":"pull access denied, repository does not exist"}}`, pods.PullDenied},
		{`{"waiting":{"reason":"ErrImagePull","message":"failed to authorize: 401 Unauthorized"}}`, pods.PullDenied},
		{`{"waiting":{"reason":"ErrImagePull","message":"no match for platform in manifest: not found"}}`, pods.ImagePlatform},
		{`{"waiting":{"reason":"ErrImagePull","message":"toomanyrequests: You have reached your pull rate limit; access denied"}}`, pods.RegistryLimit},
		{`{"waiting":{"reason":"ErrImagePull","message":"dial tcp: lookup registry.example.com: no such host"}}`, pods.RegistryDown},
		{`{"waiting":{"reason":"ErrImagePull","message":"dial tcp 10.0.0.1:5000: connect: connection refused"}}`, pods.RegistryDown},
		{`{"waiting":{"reason":"ErrImagePull","message":"net/http: TLS handshake timeout"}}`, pods.RegistryDown},
		{`{"waiting":{"reason":"ErrImagePull","message":"500 Internal Server Error"}}`, pods.RegistryDown},
		{`{"waiting":{"reason":"ErrImagePull","message":"503 Service Unavailable"}}`, pods.RegistryDown},
		{`{"waiting":{"reason":"ErrImagePull"}}`, pods.PullFailing},
		{`{"waiting":{"reason":"ErrImagePull","message":"unexpected status from HEAD request: 403 Forbidden"}}`, pods.PullDenied},
		{`{"waiting":{"reason":"ErrImagePull","message":"failed to authorize: failed to fetch anonymous token: unexpected status: 502 Bad Gateway"}}`, pods.RegistryDown},
		{`{"waiting":{"reason":"ErrImagePull","message":"failed to extract layer: no space left on device"}}`, pods.PullFailing},
		{`{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"x\""}}`, pods.PullFailing},
		{`{"waiting":{"reason":"RunContainerError","message":"exec /bin/sh: exec format error"}}`, pods.ImagePlatform},
		{`{"terminated":{"reason":"Error","exitCode":255,"message":"exec /bin/sh: exec format error"}}`, pods.ImagePlatform},
		{`{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"x\" not found"}}`, pods.NotStartable},
		{`{"waiting":{"reason":"RunContainerError","message":"exec: \"sh\": executable file not found in $PATH"}}`, pods.NotStartable},
		{`{"waiting":{"reason":"CreateContainerError","message":"context deadline exceeded"}}`, pods.Passing},
		{`{"waiting":{"reason":"CreateContainerError","message":"failed to reserve container name: name \"x\" is reserved for \"y\""}}`, pods.Passing},
		{`{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}}`, pods.NotStartable},
		{`{"waiting":{"reason":"SomethingNew","message":"?"}}`, pods.Passing},
		{`{"terminated":{"reason":"OOMKilled","exitCode":137}}`, pods.OutOfMemory},
		{`{"terminated":{"reason":"StartError","exitCode":128,"message":"exec format error"}}`, pods.ImagePlatform},
		{`{"terminated":{"reason":"ContainerCannotRun","exitCode":127}}`, pods.NotStartable},
		{`{"terminated":{"reason":"Error","exitCode":1}}`, pods.Exited},
		{`{"terminated":{"reason":"Completed","exitCode":0}}`, pods.Exited},
	}
	for _, test := range tests {
		pod := read(t, "n1", `{"phase":"Pending","containerStatuses":[{"name":"build","image":"debian:12","state":`+test.state+`}]}`)
		state := pods.StateOf(pod)
		if len(state.Problems) != 1 || state.Problems[0].Kind != test.want {
			t.Errorf("%s: got %+v, want kind %d", test.state, state.Problems, test.want)
			continue
		}
		if p := state.Find(test.want); p == nil || p.Container != "build" || p.Image != "debian:12" {
			t.Errorf("%s: Find gives %+v", test.state, p)
		}
	}
}

func TestFindIsByKind(t *testing.T) {
	t.Parallel()
	state := pods.State{Problems: []pods.Problem{{Container: "a", Kind: pods.Passing}, {Container: "b", Kind: pods.Exited}, {Container: "c", Kind: pods.Exited}}}
	if diff := cmp.Diff(&pods.Problem{Container: "b", Kind: pods.Exited}, state.Find(pods.OutOfMemory, pods.Exited)); diff != "" {
		t.Error(diff)
	}
	if p := state.Find(pods.PullDenied); p != nil {
		t.Errorf("found %+v", p)
	}
}

// Containers that are not needed may end, but have to have started: a Pod waits
// for their images, and reads Pending until they have run.
func TestPhaseOfNeededContainers(t *testing.T) {
	t.Parallel()
	const ends = `{"name":"helper","state":{"terminated":{"reason":"Error","exitCode":3}}}`
	for _, test := range []struct {
		name, status string
		phase        pods.Phase
		detail       string
		over         int
	}{
		{"the other ended", `{"phase":"Running","containerStatuses":[{"name":"build","state":{"running":{}}},` + ends + `]}`, pods.Running, "", 1},
		{"the other could not start", `{"phase":"Running","containerStatuses":[{"name":"build","state":{"running":{}}},
			{"name":"helper","state":{"terminated":{"reason":"StartError","exitCode":128,"message":"no such file"}}}]}`, pods.Running, "", 1},
		{"the other is pulled", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"running":{}}},
			{"name":"helper","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`, pods.Starting, "ImagePullBackOff (container helper)", 0},
		{"the needed one waits, the other ended", `{"phase":"Pending","containerStatuses":[{"name":"build","state":{"waiting":{"reason":"ContainerCreating"}}},` + ends + `]}`, pods.Starting, "", 1},
		{"both ended", `{"phase":"Running","containerStatuses":[` + ends + `,{"name":"build","state":{"terminated":{"reason":"OOMKilled","exitCode":137}}}]}`,
			pods.Ended, "OOMKilled (container build): exit code 137", 1},
		{"the Pod failed", `{"phase":"Failed","containerStatuses":[` + ends + `,{"name":"build","state":{"terminated":{"reason":"Error","exitCode":1}}}]}`,
			pods.Ended, "Error (container build): exit code 1", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := pods.StateOf(read(t, "n1", test.status), "build")
			if got.Phase != test.phase || got.Detail != test.detail || len(got.Over) != test.over {
				t.Errorf("phase %s, detail %q, %d over; want %s, %q, %d", got.Phase, got.Detail, len(got.Over), test.phase, test.detail, test.over)
			}
			for _, p := range got.Over {
				if p.Code == 0 || !p.Ended {
					t.Errorf("%+v does not say how it ended", p)
				}
			}
		})
	}
}

// A container that somebody else has added is left to the kubelet: it may start
// again, and only the Pod's own phase tells that it does not. What has been given
// up is a problem of that container, never of the job's.
func TestContainersOfOthers(t *testing.T) {
	t.Parallel()
	const (
		waits = `"containerStatuses":[{"name":"build","state":{"waiting":{"reason":"PodInitializing"}}}]`
		runs  = `{"name":"build","state":{"running":{}}}`
	)
	roles := pods.Roles{Needed: []string{"build"}, Made: []string{"build", "db"}}
	for _, test := range []struct {
		name, status string
		phase        pods.Phase
		foreign      string
		over         int
	}{
		{"an init container fails and may start again", `{"phase":"Pending","initContainerStatuses":[{"name":"spy","state":{"terminated":{"reason":"Error","exitCode":1}}}],` + waits + `}`, pods.Starting, "spy", 0},
		{"an init container waits to start again", `{"phase":"Pending","initContainerStatuses":[{"name":"spy","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"reason":"Error","exitCode":1}}}],` + waits + `}`, pods.Starting, "spy", 0},
		{"an init container has failed for good", `{"phase":"Failed","initContainerStatuses":[{"name":"spy","state":{"terminated":{"reason":"Error","exitCode":1}}}],` + waits + `}`, pods.Ended, "spy", 0},
		{"a sidecar starts again beside the job", `{"phase":"Running","initContainerStatuses":[{"name":"spy","state":{"terminated":{"reason":"Error","exitCode":1}}}],"containerStatuses":[` + runs + `,{"name":"helper","state":{"running":{}}}]}`, pods.Running, "spy", 0},
		{"a container that ends does not end the job", `{"phase":"Running","containerStatuses":[` + runs + `,{"name":"spy","state":{"terminated":{"reason":"Error","exitCode":1}}}]}`, pods.Running, "", 1},
		{"one that the kubelet starts again neither", `{"phase":"Running","containerStatuses":[` + runs + `,{"name":"spy","state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"reason":"Error","exitCode":1}}}]}`, pods.Running, "", 1},
		{"one that has not run yet is waited for", `{"phase":"Pending","containerStatuses":[` + runs + `,{"name":"spy","state":{"waiting":{"reason":"CreateContainerConfigError"}}}]}`, pods.Starting, "spy", 0},
		{"a service is the job's", `{"phase":"Pending","containerStatuses":[` + runs + `,{"name":"db","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}`, pods.Starting, "", 0},
	} {
		got := roles.StateOf(read(t, "n1", test.status))
		foreign := ""
		if p := got.Foreigner(); p != nil {
			foreign = p.Container
		}
		if got.Phase != test.phase || foreign != test.foreign || len(got.Over) != test.over {
			t.Errorf("%s: %s, %q, %d over; want %s, %q, %d", test.name, got.Phase, foreign, len(got.Over), test.phase, test.foreign, test.over)
		}
	}
}
