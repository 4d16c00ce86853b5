package documents_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/examples/documents"
)

const text = `# The thing

Run ` + "`tenant-executor ps`, or `export KUBECONFIG=$(localtenant\nkubeconfig)`" + `; not ` + "`tenant-executor`" + ` nor ` + "`config.toml`" + `.

    make deps      # programs
    echo 'a # b' "c # d" x#y > e  # said

    # in another terminal
    long --one \
      --two

- A list, which goes on
    without a block. ` + "`bin/localtenant up`" + `

## 5. The first job, by hand

` + "```sh" + `
export A=1
` + "```" + `

   ` + "```toml" + `
   [log]
   ` + "```" + `

| what | ` + "`make e2e`" + ` |
`

func TestCommandsAreFound(t *testing.T) {
	got, err := documents.Parse("a.md", text)
	if err != nil {
		t.Fatal(err)
	}
	const first, second = "a.md#the-thing", "a.md#5-the-first-job-by-hand"
	want := documents.Document{
		Commands: []documents.Command{
			{Section: first, Line: 3, Text: "tenant-executor ps", Inline: true},
			{Section: first, Line: 3, Text: "export KUBECONFIG=$(localtenant kubeconfig)", Inline: true},
			{Section: first, Line: 6, Text: "make deps"},
			{Section: first, Line: 7, Text: `echo 'a # b' "c # d" x#y > e`},
			{Section: first, Line: 11, Text: "long --one --two"},
			{Section: first, Line: 14, Text: "bin/localtenant up", Inline: true},
			{Section: second, Line: 19, Text: "export A=1"},
			{Section: second, Line: 26, Text: "make e2e", Inline: true},
		},
		Fences: []documents.Fence{{Section: second, Language: "toml", Text: "   [log]\n"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFencesAreWhole(t *testing.T) {
	for _, wrong := range []string{"```\na\n```\n", "```sh\na\n", "```bash\nmake it\n```\n"} {
		if _, err := documents.Parse("a.md", wrong); err == nil || !strings.Contains(err.Error(), "a fence") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
