package settings_test

import (
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

func TestOutside(t *testing.T) {
	for text, want := range map[string]string{
		"[metrics]\ntextfile = \"/var/x.prom\"\nlisten = \":9252\"": "",
		"[metrics]\ntextfile = \"x.prom\"":                          "metrics.textfile is \"x.prom\"",
		"[metrics]\ntextfile = \"/var/x.txt\"":                      "names end in .prom alone",
		"[metrics]\nlisten = \"9252\"":                              "write an address and a port",
		"[log]\nfile = \"x\"":                                       "log.file is \"x\"",
		"[log]\nlevel = \"loud\"":                                   "use debug, info, warn, error",
		"[log]\nformat = \"xml\"":                                   "use text or json",
		"[log]\nlevel = \"warn\"\nformat = \"json\"":                "",
	} {
		s, err := settings.Parse("f", []byte(minimal+text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
		if used := strings.Contains(text, "metrics"); err == nil && s.Metrics.Used() != used {
			t.Errorf("%s: used is %t", text, s.Metrics.Used())
		}
	}
}
