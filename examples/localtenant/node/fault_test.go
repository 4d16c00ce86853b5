package node

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/faults"
)

// misfortunes puts faults on a manager's agenda.
func misfortunes(t *testing.T, m *Manager, change faults.Change) *faults.Agenda {
	t.Helper()
	agenda := &faults.Agenda{}
	if _, err := agenda.Set(change); err != nil {
		t.Fatal(err)
	}
	m.options.Faults = agenda
	return agenda
}

func TestFailingBoot(t *testing.T) {
	m := manager(t, noCluster{})
	agenda := misfortunes(t, m, faults.Change{FailingBoots: new(1), NeverReady: new(1)})
	if _, err := m.Boot(context.Background(), "worker"); !errors.Is(err, ErrFault) {
		t.Fatalf("boot: %v, want ErrFault", err)
	}
	if m.Count() != 0 || len(m.List()) != 0 {
		t.Errorf("a node that did not boot: count %d, listed %d", m.Count(), len(m.List()))
	}
	if _, err := os.Stat(m.options.Tenant.NodeDir("worker")); !os.IsNotExist(err) {
		t.Errorf("the disk of a node that did not boot: %v, want it not to be there", err)
	}
	if left := agenda.Settings(); left.FailingBoots != 0 || left.NeverReady != 1 {
		t.Errorf("still to come: %+v; want the other fault alone", left)
	}
}

func TestFaultsOfANode(t *testing.T) {
	m := manager(t, noCluster{})
	misfortunes(t, m, faults.Change{NeverReady: new(1), Unreachable: &metav1.Duration{Duration: time.Minute}})
	for _, test := range []struct {
		name  string
		ready bool
	}{{"unlucky", false}, {"lucky", true}} {
		n, err := m.reserve(test.name)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.takeFaults(n); err != nil {
			t.Fatal(err)
		}
		if err := n.write(); err != nil {
			t.Fatal(err)
		}
		// Without it containerd has no Pod network, and the kubelet says so.
		if _, err := os.Stat(n.file("cni.d/10-bridge.conflist")); (err == nil) != test.ready {
			t.Errorf("the Pod network of the %s node: %v", test.name, err)
		}
		if n.unreachable != time.Minute {
			t.Errorf("the %s node is out of reach for %s", test.name, n.unreachable)
		}
	}
}
