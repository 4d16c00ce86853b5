package stream_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/kube/stream/agent"
)

// A stop goes over the present connection, and over each further one until the
// end is known; a second one changes the grace.
func TestFollowerDeliversAStop(t *testing.T) {
	t.Parallel()
	stop := make(chan time.Duration)
	graces := make(chan uint64, 10)
	c := newCourse(t,
		func(p *peer) { p.begin(); graces <- p.awaitFrame(agent.KindStop).Offset },
		func(p *peer) {
			p.begin()
			graces <- p.awaitFrame(agent.KindStop).Offset
			graces <- p.awaitFrame(agent.KindStop).Offset
			p.send(agent.KindEnd, 0, string(agent.Status{Signal: 9, Stopped: true}.Bytes()))
		})
	go func() {
		stop <- 10 * time.Second
		c.server.Wait(t, "there is another connection", func() bool { return len(c.server.Execs()) == 2 })
		stop <- 0
	}()
	status, err := c.follower().Run(t.Context(), c.stage(&c.output), stop)
	if err != nil || !status.Stopped {
		t.Errorf("ended with %+v, %v", status, err)
	}
	if got := []uint64{<-graces, <-graces, <-graces}; !cmp.Equal(got, []uint64{10000, 10000, 0}) {
		t.Errorf("the graces were %d ms", got)
	}
}

// A stop that comes while the script is on its way does not get among its
// frames: the agent would not understand either.
func TestFollowerStopWaitsForTheScript(t *testing.T) {
	t.Parallel()
	stop := make(chan time.Duration)
	c := newCourse(t, func(p *peer) {
		p.begin()
		if grace := p.awaitFrame(agent.KindStop).Offset; grace != 1000 {
			t.Errorf("the grace was %d ms", grace)
		}
		p.send(agent.KindEnd, 0, string(agent.Status{Signal: 15, Stopped: true}.Bytes()))
	})
	go func() { stop <- time.Second }()
	s := c.stage(&c.output)
	s.Script = noise(5, 2<<20)
	status, err := c.follower().Run(t.Context(), s, stop)
	if err != nil || !status.Stopped {
		t.Errorf("ended with %+v, %v", status, err)
	}
}
