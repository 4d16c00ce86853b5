package stages

import (
	"context"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// shortestBoot is the least wait for a node that can have been a boot.
const shortestBoot = 2 * time.Second

// noteBoot tells the wait for a node apart that is over: a queue for the nodes of
// others is no boot, and a node that was booted for another is not this job's.
// Only what was one whole boot is remembered as such.
func (n *narrator) noteBoot(ctx context.Context, running *corev1.Pod, waited time.Duration) {
	if waited < shortestBoot {
		return
	}
	limited, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	o, err := n.outlook(limited)
	node := o.Health(running.Spec.NodeName)
	if err != nil || !node.Exists {
		return
	}
	d := n.driver
	split := n.record.Split(o, running, waited)
	d.course.Note(func(c *course.Course) {
		c.Kind = course.Queued
		if split.Booted {
			c.Kind = course.Cold
		}
		c.Waits.Queue += course.SecondsOf(split.Queue)
	})
	if split.Exact {
		d.history.Add(split.Boot)
	}
	if split.Booted {
		d.history.AddSize(d.clock.Now(), node.Allocatable)
	}
}

// files is where the driver keeps what the cluster cannot tell it.
type files interface {
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, data []byte) error
}

// bootsFile, with the cluster's identity behind it, holds the boots of late, a
// line each, in milliseconds, newest last.
const bootsFile = "boots-"

// keptBoots is how many boots are kept.
const keptBoots = 20

// history remembers how long nodes took to boot. Without a folder it remembers
// nothing; what cannot be read or written costs a figure in the job log and no
// more.
type history struct {
	files files
	// cluster is the identity of the cluster.
	cluster string
}

// Boots are the boots of late, oldest first.
func (h history) Boots() []time.Duration {
	if h.files == nil {
		return nil
	}
	text, err := h.files.ReadFile(bootsFile + h.cluster)
	if err != nil {
		return nil
	}
	var boots []time.Duration
	for line := range strings.Lines(string(text)) {
		if ms, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil && ms > 0 {
			boots = append(boots, time.Duration(ms)*time.Millisecond)
		}
	}
	return boots[max(0, len(boots)-keptBoots):]
}

// Add notes a boot. Of two drivers at once one may be lost.
func (h history) Add(boot time.Duration) {
	if h.files == nil || boot <= 0 {
		return
	}
	boots := append(h.Boots(), boot)
	var text strings.Builder
	for _, b := range boots[max(0, len(boots)-keptBoots):] {
		text.WriteString(strconv.FormatInt(b.Milliseconds(), 10) + "\n")
	}
	_ = h.files.WriteFile(bootsFile+h.cluster, []byte(text.String()))
}
