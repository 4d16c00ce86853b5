package settings

import (
	"fmt"
	"slices"
	"strings"
)

// made says where the generated files come from.
const made = `Made from executor/settings; "make update" writes it again.`

// referencePath is where Reference is kept.
const referencePath = "docs/reference/configuration.md"

// Example is a file that shows the keys with their meaning: keys that have to
// be set are set, the others stand as comments with their defaults or an
// example. Tables inside [kubernetes] are only named; Reference has them.
func Example() string {
	var b strings.Builder
	b.WriteString(`# Configuration of tenant-executor. Its place is ` + DefaultPath + `.
# ` + made + `
# A key that is commented out shows its default, or an example where it has none.
`)
	var inner []string
	for _, table := range Tables() {
		if name, isInner := strings.CutPrefix(table.Name, "kubernetes."); isInner {
			if first, _, _ := strings.Cut(name, "."); !slices.Contains(inner, first) {
				inner = append(inner, first)
			}
			continue
		}
		if len(inner) > 0 {
			fmt.Fprintf(&b, "\n# There are tables inside [kubernetes] as well, which %s shows:\n# %s.\n", referencePath, strings.Join(inner, ", "))
			inner = nil
		}
		b.WriteString("\n# " + table.Doc + "\n")
		writeTable(&b, table)
	}
	return b.String()
}

// Reference is the configuration reference: every table and every key.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration reference

<!-- ` + made + ` -->

The driver reads one file, ` + "`" + DefaultPath + "`" + ` unless ` + "`--config`" + ` or the variable
` + "`TENANT_EXECUTOR_CONFIG`" + ` names another. It is TOML, and strict: an unknown key is an
error, and so is a value that makes no sense. A key that is commented out below shows
its default, or an example where it has none.

Keys of ` + "`[kubernetes]`" + ` have the names and meanings of ` + "`[runners.kubernetes]`" + ` in the
runner's config.toml; what differs is said. [parity.md](parity.md) lists all of those.
`)
	for _, table := range Tables() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", header(table), table.Doc)
		for _, key := range table.Keys {
			if key.Parity != "" {
				fmt.Fprintf(&b, "\n`%s` differs from the kubernetes executor's: %s.\n", key.Name, strings.TrimSuffix(key.Parity, "."))
			}
		}
		b.WriteString("\n```toml\n")
		writeTable(&b, table)
		b.WriteString("```\n")
	}
	return b.String()
}

func header(table Table) string {
	if table.List {
		return "[[" + table.Name + "]]"
	}
	return "[" + table.Name + "]"
}

func writeTable(b *strings.Builder, table Table) {
	comment := ""
	if table.List || table.Inner {
		// An entry that nobody asked for would not be the default.
		comment = "# "
	}
	b.WriteString(comment + header(table) + "\n")
	for _, key := range table.Keys {
		b.WriteString("\n")
		writeKey(b, key)
	}
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
