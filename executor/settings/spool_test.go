package settings_test

import (
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// The spool stays well within the disk of the job, on both sides of each bound.
func TestSpoolStaysWithinTheDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spool, build, helper string
		want                 int64 // in MiB
	}{
		"nothing set":            {"", "", "", 64},
		"set":                    {"1Gi", "", "", 1024},
		"much disk":              {"", "10Gi", "", 64},
		"just enough":            {"", "512Mi", "", 64},
		"less":                   {"", "504Mi", "", 63},
		"two limits":             {"", "256Mi", "256Mi", 64},
		"little":                 {"", "200Mi", "", 25},
		"hardly any":             {"", "64Mi", "", 8},
		"less than hardly any":   {"", "16Mi", "", 8},
		"set, the job has less":  {"64Mi", "256Mi", "", 32},
		"set, and there is room": {"16Mi", "256Mi", "", 16},
	} {
		var s settings.Settings
		s.Run.SpoolLimit = c.spool
		s.Kubernetes.EphemeralStorageLimit, s.Kubernetes.HelperEphemeralStorageLimit = c.build, c.helper
		if got := s.SpoolBytes(); got != c.want<<20 {
			t.Errorf("%s: %d bytes, want %d Mi", name, got, c.want)
		}
	}
}
