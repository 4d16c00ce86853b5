package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/controlplane"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/gateway"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/node"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/registry"
	"github.com/socialweb-computer/tenant-executor/examples/localtenant/tenant"
)

func place(t *testing.T) tenant.Tenant {
	t.Helper()
	made, err := tenant.New(filepath.Join(t.TempDir(), "root"), "demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := made.MakeDirs(); err != nil {
		t.Fatal(err)
	}
	return made
}

// starting answers on a tenant's socket as a daemon does that is at its start.
func starting(t *testing.T, where tenant.Tenant) *progress {
	t.Helper()
	d := &Daemon{tenant: where, progress: newProgress(time.Now), log: slog.New(slog.DiscardHandler)}
	listener, err := net.Listen("unix", where.Socket())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: d.routes()}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return d.progress
}

func TestFollowStart(t *testing.T) {
	where := place(t)
	steps := starting(t, where)
	steps.done("early")
	var told []string
	done := make(chan error, 1)
	heard := make(chan struct{}, 2)
	go func() {
		done <- NewClient(where).FollowStart(t.Context(), func(step Step) {
			told = append(told, step.Name)
			heard <- struct{}{}
		})
	}()
	<-heard
	steps.done("late")
	<-heard
	steps.end(nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"early", "late"}, told); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// TestFollowEnds: a reader is not kept waiting after the last step.
func TestFollowEnds(t *testing.T) {
	for _, end := range []error{nil, errors.New("no bridge")} {
		steps := newProgress(time.Now)
		steps.end(end)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := steps.follow(ctx, func(Step) error { return nil }); err != nil {
			t.Errorf("after an end with %v: %v", end, err)
		}
		cancel()
	}
}

func TestFollowAFailedStart(t *testing.T) {
	where := place(t)
	starting(t, where).end(errors.New("no bridge"))
	err := NewClient(where).FollowStart(t.Context(), func(Step) {})
	if err == nil || err.Error() != "no bridge" {
		t.Errorf("%v; want the reason", err)
	}
}

func TestVerbsDuringTheStart(t *testing.T) {
	where := place(t)
	starting(t, where)
	client := NewClient(where)
	if _, err := client.AddNode(t.Context(), AddNode{}); err == nil || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("node add: %v", err)
	}
	status, err := client.Status(t.Context())
	if err != nil || status.State != Starting || status.Details != nil {
		t.Errorf("status: %+v, %v", status, err)
	}
}

func TestWithoutDaemon(t *testing.T) {
	where := place(t)
	client := NewClient(where)
	if err := client.RemoveNode(t.Context(), "a"); !errors.Is(err, ErrNotRunning) {
		t.Errorf("node remove: %v, want ErrNotRunning", err)
	}
	status, err := client.Status(t.Context())
	if err != nil || status.State != Crashed {
		t.Errorf("with a state folder: %+v, %v", status, err)
	}
	if err := os.RemoveAll(where.Dir()); err != nil {
		t.Fatal(err)
	}
	if status, err := client.Status(t.Context()); err != nil || status.State != Absent {
		t.Errorf("without: %+v, %v", status, err)
	}
}

func TestCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{node.ErrUnknown, http.StatusNotFound},
		{node.ErrName, http.StatusBadRequest},
		{gateway.ErrSettings, http.StatusBadRequest},
		{registry.ErrFaults, http.StatusBadRequest},
		{faults.ErrSettings, http.StatusBadRequest},
		{controlplane.ErrStopped, http.StatusConflict},
		{node.ErrFault, http.StatusConflict},
		{node.ErrKilled, http.StatusConflict},
		{errStarting, http.StatusServiceUnavailable},
		{errors.New("else"), http.StatusInternalServerError},
	} {
		if got := code(fmt.Errorf("wrapped: %w", test.err)); got != test.want {
			t.Errorf("%v is answered with %d, want %d", test.err, got, test.want)
		}
	}
}

func TestConfig(t *testing.T) {
	where := place(t)
	want := Config{Name: "demo", Network: "10.201.0.0/16", Username: "tenant", Password: "secret", Guest: "guest", Gateway: gateway.Defaults()}
	if err := want.Write(where); err != nil {
		t.Fatal(err)
	}
	got, err := ReadConfig(where)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	info, err := os.Stat(where.Record())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record with its password has mode %v, %v", info.Mode(), err)
	}
}

func TestOneDaemonATenant(t *testing.T) {
	where := place(t)
	unlock, err := where.LockDaemon()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	err = Run(context.Background(), where, nil, slog.New(slog.DiscardHandler), time.Now)
	if !errors.Is(err, tenant.ErrLocked) {
		t.Errorf("a second daemon: %v, want ErrLocked", err)
	}
}

// TestStatusFields keeps the names that tests and scripts read.
func TestStatusFields(t *testing.T) {
	text, err := json.Marshal(Status{Details: &Details{Nodes: []node.Status{{}}, Components: []controlplane.Component{{}}}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"name", "state", "stateDir", "url", "accessDir", "kubeconfig", "logDir", "pid", "bridge", "bridgeAddress", "network", "created",
		"registry.plain", "registry.auth", "registry.username", "registry.password", "registry.delay", "registry.down",
		"registry.token", "registry.guest", "registry.refuse", "registry.rateLimited", "registry.bytesPerSecond", "registry.repositories",
		"apiserver.running", "apiserver.pid", "apiserver.port", "apiserver.log", "apiserver.auditLog",
		"gateway.ceiling", "gateway.podsPerNode", "gateway.hold", "gateway.bootTime", "gateway.paused", "gateway.state",
		"gateway.unfinishedPods", "gateway.wanted", "gateway.booting", "gateway.nodes",
		"kcp.running", "kcp.pid", "kcp.url", "kcp.port", "kcp.kubeconfig", "kcp.cluster", "kcp.log",
		"mount.url", "mount.token", "mount.caFile",
		"faults.failingBoots", "faults.neverReady", "faults.unreachable", "faults.dropsOnBind",
	} {
		if !holds(got, strings.Split(path, ".")) {
			t.Errorf("the status has no field %s", path)
		}
	}
	for list, fields := range map[string][]string{
		"nodes":      {"name", "state", "cut", "pid", "ip", "podRange", "since", "logDir", "link"},
		"components": {"name", "running", "pid", "log"},
	} {
		items, ok := got[list].([]any)
		if !ok || len(items) != 1 {
			t.Fatalf("%s is %v", list, got[list])
		}
		for _, field := range fields {
			if item, ok := items[0].(map[string]any); !ok || !holds(item, []string{field}) {
				t.Errorf("%s have no field %s", list, field)
			}
		}
	}
}

func holds(object map[string]any, path []string) bool {
	value, found := object[path[0]]
	if !found || len(path) == 1 {
		return found
	}
	inner, ok := value.(map[string]any)
	return ok && holds(inner, path[1:])
}
