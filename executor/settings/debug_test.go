package settings_test

import (
	"testing"
	"time"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

func TestHoldAsked(t *testing.T) {
	for variable, want := range map[string]time.Duration{
		"": 0, "0": 0, "false": 0, "0s": 0, "true": time.Hour, "1": time.Hour, "15m": 15 * time.Minute, "90m": time.Hour,
	} {
		if got, err := (settings.Debug{Hold: "1h"}).Asked(variable); err != nil || got != want {
			t.Errorf("%q gives %s, %v; want %s", variable, got, err, want)
		}
		if got, err := (settings.Debug{Hold: "0s"}).Asked(variable); err != nil || got != 0 {
			t.Errorf("%q gives %s, %v where none is allowed", variable, got, err)
		}
	}
	for _, variable := range []string{"yes", "-5m", "15"} {
		if got, err := (settings.Debug{Hold: "1h"}).Asked(variable); err == nil || got != 0 {
			t.Errorf("%q gives %s, %v", variable, got, err)
		}
	}
}
