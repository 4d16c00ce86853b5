package keys

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"script", "before_script", "image", "services", "run_exec"}
	for key, want := range map[string]string{
		"scripts":       "script",
		"befor_script":  "before_script",
		"imgae":         "image",
		"servcies":      "services",
		"runexec":       "run_exec",
		"quite_another": "",
		"xyz":           "",
	} {
		if got := Nearest(key, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", key, got, want)
		}
	}
}
