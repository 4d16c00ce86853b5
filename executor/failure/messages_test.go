package failure_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
)

var update = flag.Bool("update", false, "write generated files instead of comparing them")

const (
	root             = "../.."
	failuresPath     = root + "/docs/reference/failures.md"
	troubleshootPath = root + "/docs/troubleshooting.md"
)

// message is what the driver may write, as its source has it.
type message struct {
	// cause is the identifier of a failure's cause, "" for a line of the job log.
	cause, text string
}

// The reference of failures is made of the table of causes and of the messages
// in the source.
func TestFailureReference(t *testing.T) {
	byCause := map[string][]string{}
	for _, m := range messages(t) {
		if m.cause != "" {
			byCause[m.cause] = append(byCause[m.cause], m.text)
		}
	}
	var b strings.Builder
	b.WriteString(`# Failures

<!-- Made by executor/failure; "make update" writes it again. -->

Every way in which a stage can fail. A *build failure* is the job's: it is not tried
again. A *system failure* is the cluster's or the connection's: the runner tries
` + "`prepare`" + ` again, and ` + "`retry: when: runner_system_failure`" + ` repeats the job. Messages are shown
as the source has them, with … for what varies; what comes behind is the cluster's own
word.
`)
	for _, d := range failure.Causes() {
		kind := d.Class.String()
		fmt.Fprintf(&b, "\n## %s\n\n%s. %s\n", d.Cause, strings.ToUpper(kind[:1])+kind[1:], d.Meaning)
		if d.Remedy != "" {
			fmt.Fprintf(&b, "\n%s\n", d.Remedy)
		}
		b.WriteString(special(d.Cause))
		if texts := byCause[identifier(d.Cause)]; len(texts) > 0 {
			b.WriteString("\n```text\n" + strings.Join(texts, "\n") + "\n```\n")
		}
	}
	if *update {
		if err := os.WriteFile(failuresPath, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(failuresPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s is not what the source says; run make update (-want +got):\n%s", failuresPath, diff)
	}
}

// special are the remedies of a cause that depend on what was seen.
func special(c failure.Cause) string {
	var b strings.Builder
	for _, r := range failure.Remedies() {
		if slices.Contains(r.Causes, c) {
			fmt.Fprintf(&b, "\n- Where %s: %s", r.When, strings.ReplaceAll(r.Text, "%s", "…"))
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// identifier is the constant's name for a cause.
func identifier(c failure.Cause) string {
	var name strings.Builder
	for _, word := range strings.Split(string(c), "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// Whoever looks a line of the job log up finds it.
func TestEveryLineIsExplained(t *testing.T) {
	text, err := os.ReadFile(troubleshootPath)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, m := range messages(t) {
		if m.cause != "" || len(strings.Fields(strings.ReplaceAll(m.text, "…", ""))) < 2 {
			continue
		}
		lines++
		if !strings.Contains(string(text), "`"+m.text+"`") {
			t.Errorf("docs/troubleshooting.md does not explain `%s`", m.text)
		}
	}
	if lines < 20 {
		t.Errorf("only %d lines were found in the source", lines)
	}
}

// messages are all that the source of the driver may write to a job log.
func messages(t *testing.T) []message {
	t.Helper()
	var all []message
	for _, folder := range []string{"stages", "executor/pod", "executor/overwrite", "cmd/tenant-executor"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					all = append(all, said(call)...)
				}
				return true
			})
		}
	}
	slices.SortFunc(all, func(a, b message) int { return cmp.Or(cmp.Compare(a.cause, b.cause), cmp.Compare(a.text, b.text)) })
	return slices.Compact(all)
}

// said is what a call writes, if it is one that does.
func said(call *ast.CallExpr) []message {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	receiver, _ := method.X.(*ast.Ident)
	ofFailure := receiver != nil && receiver.Name == "failure"
	at, cause := -1, ""
	switch {
	case ofFailure && method.Sel.Name == "New":
		at = 1
	case ofFailure && method.Sel.Name == "Wrap":
		at = 2
	case slices.Contains([]string{"Info", "Warn", "note"}, method.Sel.Name):
		at = 0
	case method.Sel.Name == "say":
		at = 1
	}
	if at < 0 || at >= len(call.Args) {
		return nil
	}
	literal, ok := call.Args[at].(*ast.BasicLit)
	if !ok {
		return nil
	}
	if ofFailure {
		named, ok := call.Args[0].(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		cause = named.Sel.Name
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []message{{cause, verbs.ReplaceAllString(text, "…")}}
}

// verbs are where a message varies.
var verbs = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)
