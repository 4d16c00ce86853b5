package stages

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/stages/state"
)

// setClock is a clock that stands still.
type setClock struct {
	Clock
	now time.Time
}

func (c setClock) Now() time.Time { return c.now }

func asking(cpu string) *corev1.PodSpec {
	return &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}}
}

func nodeOf(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), "example.com/gpu": resource.MustParse("1")}
}

// The nodes of the last day decide, of this cluster alone, and the settings
// before them.
func TestCheckSize(t *testing.T) {
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	here := history{folder, "here"}
	here.AddSize(start, nodeOf("2"))
	here.AddSize(start.Add(time.Hour), nodeOf("4"))
	history{folder, "elsewhere"}.AddSize(start, nodeOf("64"))
	for _, test := range []struct {
		name     string
		history  history
		at       time.Duration
		settings settings.Tenant
		asks     string
		refused  bool
	}{
		{"as the largest", here, 2 * time.Hour, settings.Tenant{}, "4", false},
		{"more than the largest", here, 2 * time.Hour, settings.Tenant{}, "4001m", true},
		{"the largest was seen long ago", here, 25 * time.Hour, settings.Tenant{}, "64", false},
		{"only the smaller one was", here, 24*time.Hour + time.Minute, settings.Tenant{}, "3", false},
		{"the settings know better", here, 2 * time.Hour, settings.Tenant{NodeCPU: "8"}, "8", false},
		{"the settings know better, and it is too much", here, 2 * time.Hour, settings.Tenant{NodeCPU: "3"}, "4", true},
		{"nothing is known", history{folder, "new"}, 0, settings.Tenant{}, "1000", false},
		{"there is no folder", history{(*state.Folder)(nil), "here"}, 0, settings.Tenant{}, "1000", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &Driver{history: test.history, clock: setClock{now: start.Add(test.at)}, settings: settings.Settings{Tenant: test.settings}}
			err := d.checkSize(asking(test.asks))
			if (err != nil) != test.refused {
				t.Fatalf("error %v, refused should be %v", err, test.refused)
			}
			if err != nil && failure.Of(err).Cause != failure.Oversized {
				t.Errorf("cause %s", failure.Of(err).Cause)
			}
		})
	}
	if got := here.Sizes(start.Add(time.Hour)); len(got) != 2 || len(got[0].Allocatable) != 1 {
		t.Errorf("kept is %+v", got)
	}
}

func TestSizesAreFew(t *testing.T) {
	folder, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := history{folder, "here"}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for range keptSizes + 5 {
		h.AddSize(now, nodeOf("2"))
	}
	if n := len(h.Sizes(now)); n != keptSizes {
		t.Errorf("%d sizes are kept, want %d", n, keptSizes)
	}
	if err := folder.WriteFile(sizesFile+"here", []byte("[{")); err != nil {
		t.Fatal(err)
	}
	if got := h.Sizes(now); got != nil {
		t.Errorf("a damaged file gives %v", got)
	}
}
