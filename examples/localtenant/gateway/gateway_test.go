package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// market is nodes and Pods without machines.
type market struct {
	mu     sync.Mutex
	pods   int
	nodes  int
	booted int
	tries  int
	drops  int
	fail   error
}

func (m *market) UnfinishedPods() int { m.mu.Lock(); defer m.mu.Unlock(); return m.pods }
func (m *market) Count() int          { m.mu.Lock(); defer m.mu.Unlock(); return m.nodes }

func (m *market) history() (booted, drops int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.booted, m.drops
}

func (m *market) Boot(context.Context, string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries++
	if m.fail != nil {
		return "", m.fail
	}
	m.nodes++
	m.booted++
	return fmt.Sprint("node-", m.booted), nil
}

func (m *market) RemoveAll(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes = 0
	m.drops++
	return nil
}

// run runs a gateway in a bubble whose clock moves by itself when all wait.
func run(t *testing.T, settings Settings, play func(m *market, g *Gateway, pods func(int))) {
	synctest.Test(t, func(t *testing.T) {
		m := &market{}
		g := New(settings, m, m, slog.New(slog.DiscardHandler), time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { g.Run(ctx) })
		play(m, g, func(count int) {
			m.mu.Lock()
			m.pods = count
			m.mu.Unlock()
			g.Wake()
			synctest.Wait()
		})
		cancel()
		running.Wait()
	})
}

func quick() Settings {
	return Settings{
		Ceiling: 3, PodsPerNode: 1,
		Hold: metav1.Duration{Duration: time.Minute}, BootTime: metav1.Duration{Duration: 10 * time.Second},
	}
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestFromZeroToZero(t *testing.T) {
	run(t, quick(), func(m *market, g *Gateway, pods func(int)) {
		pods(2)
		if s := g.Status(); s.State != Booting || s.Booting != 2 || s.Nodes != 0 {
			t.Errorf("after two Pods: %+v", s)
		}
		after(9 * time.Second)
		if m.Count() != 0 {
			t.Error("a node was there before the boot time")
		}
		after(time.Second)
		if s := g.Status(); s.State != Serving || s.Nodes != 2 || s.Booting != 0 {
			t.Errorf("after the boot time: %+v", s)
		}
		pods(1)
		after(time.Hour)
		if m.Count() != 2 {
			t.Error("a single node was removed while something ran")
		}
		pods(0)
		if s := g.Status(); s.State != Idle || s.IdleSince == nil {
			t.Errorf("when nothing runs: %+v", s)
		}
		after(59 * time.Second)
		if _, drops := m.history(); drops != 0 {
			t.Error("dropped before the hold was over")
		}
		after(time.Second)
		_, drops := m.history()
		if s := g.Status(); drops != 1 || s.State != Empty || s.Nodes != 0 {
			t.Errorf("after the hold: %d drops, %+v", drops, s)
		}
	})
}

func TestHoldBeginsAnew(t *testing.T) {
	run(t, quick(), func(m *market, g *Gateway, pods func(int)) {
		pods(1)
		after(10 * time.Second)
		pods(0)
		after(50 * time.Second)
		pods(1)
		pods(0)
		after(50 * time.Second)
		if booted, drops := m.history(); drops != 0 || booted != 1 {
			t.Errorf("%d drops, %d boots; want the node to stay", drops, booted)
		}
		after(10 * time.Second)
		if _, drops := m.history(); drops != 1 {
			t.Error("not dropped a hold after the last Pod")
		}
	})
}

func TestChangesWhileItRuns(t *testing.T) {
	run(t, quick(), func(m *market, g *Gateway, pods func(int)) {
		pods(9)
		after(10 * time.Second)
		if m.Count() != 3 {
			t.Fatalf("%d nodes at a ceiling of 3", m.Count())
		}
		five, bad, soon := 5, 0, metav1.Duration{Duration: time.Second}
		if _, err := g.Set(Change{Ceiling: &bad, Hold: &soon}); !errors.Is(err, ErrSettings) {
			t.Errorf("a ceiling of 0 gave %v", err)
		}
		if g.Status().Hold.Duration != time.Minute {
			t.Error("a refused change has changed something")
		}
		if _, err := g.Set(Change{Ceiling: &five, Hold: &soon}); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Second)
		if m.Count() != 5 {
			t.Errorf("%d nodes at a ceiling of 5", m.Count())
		}
		yes, no := true, false
		if _, err := g.Set(Change{Paused: &yes}); err != nil {
			t.Fatal(err)
		}
		pods(0)
		after(time.Hour)
		if _, drops := m.history(); drops != 0 || g.Status().State != Paused {
			t.Errorf("paused: %d drops, state %s", drops, g.Status().State)
		}
		if _, err := g.Set(Change{Paused: &no}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, drops := m.history(); drops != 1 {
			t.Error("not dropped after the pause, though the hold was long over")
		}
	})
}

func TestBootThatFails(t *testing.T) {
	run(t, quick(), func(m *market, g *Gateway, pods func(int)) {
		m.mu.Lock()
		m.fail = errors.New("no power")
		m.mu.Unlock()
		pods(1)
		after(24 * time.Second)
		m.mu.Lock()
		tries := m.tries
		m.mu.Unlock()
		if tries != 1 {
			t.Errorf("%d tries in 24 seconds; want a pause of %s and a boot time after the first", tries, failurePause)
		}
		if s := g.Status(); s.LastError != "no power" || s.Booting != 1 {
			t.Errorf("after a failure: %+v", s)
		}
		m.mu.Lock()
		m.fail = nil
		m.mu.Unlock()
		after(time.Second)
		if s := g.Status(); s.LastError != "" || s.Nodes != 1 {
			t.Errorf("after the next try: %+v", s)
		}
	})
}
