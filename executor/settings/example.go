package settings

import (
	"fmt"
	"strings"
)

// Example is a file that shows every key with its meaning: keys that have to
// be set are set, the others stand as comments with their defaults or an
// example. It is the configuration reference.
func Example() string {
	var b strings.Builder
	b.WriteString(`# Configuration of tenant-executor. Its place is ` + DefaultPath + `.
# Made from executor/settings; "make update" writes it again.
# A key that is commented out shows its default, or an example where it has none.
`)
	for _, table := range Tables() {
		header := "[" + table.Name + "]"
		switch {
		case table.List:
			// An entry that nobody asked for would not be the default.
			header = "# [" + header + "]"
		case table.Inner:
			header = "# " + header
		}
		fmt.Fprintf(&b, "\n# %s\n%s\n", table.Doc, header)
		for _, key := range table.Keys {
			b.WriteString("\n")
			writeKey(&b, key)
		}
	}
	return b.String()
}

func writeKey(b *strings.Builder, key Key) {
	switch {
	case required[key.Path()]:
		fmt.Fprintf(b, "# %s\n%s = %s\n", key.Doc, key.Name, key.TOML(key.Example))
	case key.Default != "":
		fmt.Fprintf(b, "# %s\n# %s = %s\n", key.Doc, key.Name, key.TOML(key.Default))
	default:
		fmt.Fprintf(b, "# %s Not set by default.\n# %s = %s\n", key.Doc, key.Name, key.TOML(key.Example))
	}
}

// required names the keys without which Parse refuses a file.
var required = map[string]bool{
	"cluster.url":       true,
	"cluster.ca_file":   true,
	"cluster.cert_file": true,
	"cluster.key_file":  true,
}
