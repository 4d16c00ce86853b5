package controlplane

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/kcp"
)

// notebook is a directory that notes what is published.
type notebook struct {
	lines []string
	// during is called in the middle of each publication.
	during func()
	refuse error
}

func (n *notebook) Open(context.Context) error { return nil }

func (n *notebook) Publish(_ context.Context, url string, phase kcp.Phase) error {
	n.lines = append(n.lines, url+" "+string(phase))
	if n.during != nil {
		n.during()
	}
	return n.refuse
}

// announcing is a control plane whose kcp side runs and has a notebook.
func announcing(t *testing.T) (*Plane, *notebook) {
	t.Helper()
	p, notes := plane(t, "exec sleep 1000\n"), &notebook{}
	if err := p.start(kcpServer, nil); err != nil {
		t.Fatal(err)
	}
	p.directory, p.port = notes, 24444
	return p, notes
}

func TestAnnounce(t *testing.T) {
	p, notes := announcing(t)
	ctx := t.Context()
	if err := p.announce(ctx); err != nil || len(notes.lines) != 0 {
		t.Errorf("before the first start of the apiserver: %v, %v", notes.lines, err)
	}
	if err := p.setPhase(ctx, kcp.Provisioning); err != nil {
		t.Fatal(err)
	}
	if err := p.setPhase(ctx, kcp.Ready); err != nil {
		t.Fatal(err)
	}
	if err := p.KillKCP(); err != nil {
		t.Fatal(err)
	}
	p.port = 24448
	if err := p.setPhase(ctx, kcp.Provisioning); err != nil {
		t.Errorf("with the kcp side down: %v; the apiserver can do without it", err)
	}
	if diff := cmp.Diff([]string{"https://127.0.0.1:24444 Provisioning", "https://127.0.0.1:24444 Ready"}, notes.lines); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestAnnounceFails(t *testing.T) {
	p, notes := announcing(t)
	notes.refuse = errors.New("not you")
	if err := p.setPhase(t.Context(), kcp.Ready); !errors.Is(err, notes.refuse) {
		t.Errorf("a refusal is told as %v", err)
	}
	notes.during = func() {
		if err := p.KillKCP(); err != nil {
			t.Error(err)
		}
	}
	if err := p.setPhase(t.Context(), kcp.Ready); err != nil {
		t.Errorf("the kcp side has gone away meanwhile: %v; it is told when it starts", err)
	}
}

func TestKCPOutOfTurn(t *testing.T) {
	p := plane(t, "exec sleep 1000\n")
	if err := p.KillKCP(); !errors.Is(err, ErrStopped) {
		t.Errorf("killed before its start: %v, want ErrStopped", err)
	}
	if err := p.start(kcpServer, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.StartKCP(t.Context(), 0); !errors.Is(err, ErrRunning) {
		t.Errorf("started twice: %v, want ErrRunning", err)
	}
	if state := p.KCP(); !state.Running || state.PID == 0 {
		t.Errorf("state is %+v", state)
	}
	if err := p.KillKCP(); err != nil {
		t.Fatal(err)
	}
	if state := p.KCP(); state.Running || state.PID != 0 {
		t.Errorf("after the kill its state is %+v", state)
	}
}
