// Package documents finds the commands that the documents tell people to type,
// so that tests can run each of them.
//
// An indented block holds commands, a line each; so does a fenced one in sh. All
// else that is no prose stands in a fence with its language. In prose and tables
// a command is code that begins with the name of a program.
package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Command is one command of a document.
type Command struct {
	// Section is the document with the heading's anchor: README.md#try-it.
	Section string
	Line    int
	// Text is the command without a comment behind it.
	Text string
	// Inline is whether it stands in prose or in a table.
	Inline bool
}

// Fence is a fenced block that is no command.
type Fence struct {
	Section, Language, Text string
}

// Document is what tests want of a document.
type Document struct {
	Commands []Command
	Fences   []Fence
}

// All are the documents that people follow, by their paths below the root of the
// repository: the README files and what is in docs. What is made from code is
// not among them.
func All(root string) (map[string]Document, error) {
	names, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil {
		return nil, fmt.Errorf("looking for documents: %w", err)
	}
	names = append(names, "README.md")
	err = fs.WalkDir(os.DirFS(root), "examples", func(name string, _ fs.DirEntry, err error) error {
		if path.Base(name) == "README.md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for documents: %w", err)
	}
	all := map[string]Document{}
	for _, name := range names {
		if all[name], err = Read(root, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Read reads one document.
func Read(root, name string) (Document, error) {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return Document{}, fmt.Errorf("reading documents: %w", err)
	}
	return Parse(name, string(text))
}

// Parse finds the commands in the text of a document.
func Parse(name, text string) (Document, error) {
	p := parser{name: name, section: name}
	for i, line := range strings.Split(text, "\n") {
		if err := p.take(i+1, line); err != nil {
			return Document{}, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	if p.fence != nil {
		return Document{}, fmt.Errorf("%s: a fence is not closed", name)
	}
	p.endParagraph()
	return p.found, nil
}

// parser goes through the lines of a document.
type parser struct {
	name, section string
	found         Document
	fence         *Fence
	// block is whether the last line was one of an indented block, blank whether
	// there was nothing on it.
	block, blank bool
	// more is a command that goes on in the next line.
	more      string
	paragraph []string
	began     int
}

func (p *parser) take(number int, line string) error {
	trimmed := strings.TrimSpace(line)
	language, mark := strings.CutPrefix(trimmed, "```")
	switch {
	case p.fence != nil && mark:
		if p.fence.Language != shell {
			p.found.Fences = append(p.found.Fences, *p.fence)
		}
		p.fence = nil
	case p.fence != nil && p.fence.Language == shell:
		p.command(number, trimmed)
	case p.fence != nil && begins(trimmed):
		return fmt.Errorf("a command in a fence of %s: fence it as %s, or indent it", p.fence.Language, shell)
	case p.fence != nil:
		p.fence.Text += line + "\n"
	case mark && language == "":
		return fmt.Errorf("a fence names no language")
	case mark:
		p.endParagraph()
		p.fence = &Fence{Section: p.section, Language: language}
	case strings.HasPrefix(line, "    ") && (p.block || p.blank):
		p.endParagraph()
		p.command(number, trimmed)
		p.block, p.blank = true, false
		return nil
	case trimmed == "":
		p.endParagraph()
		p.blank = true
		return nil // a block may go on behind it
	case strings.HasPrefix(line, "#"):
		p.endParagraph()
		p.section = p.name + "#" + anchor(line)
	default:
		if len(p.paragraph) == 0 {
			p.began = number
		}
		p.paragraph = append(p.paragraph, trimmed)
	}
	p.block, p.blank = false, false
	return nil
}

// anchor is what links to a heading end with.
func anchor(heading string) string {
	kept := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789- ", r) {
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimLeft(heading, "# ")))
	return strings.ReplaceAll(kept, " ", "-")
}

// comment is what stands behind a command. A # in quotes, or in a word, is none.
var comment = regexp.MustCompile(`^((?:'[^']*'|"[^"]*"|[^'"])*?)(?:(?:^|\s)#.*)?$`)

func (p *parser) command(number int, line string) {
	if head, goesOn := strings.CutSuffix(p.more+line, `\`); goesOn {
		p.more = head
		return
	}
	text := strings.TrimSpace(comment.ReplaceAllString(p.more+line, "$1"))
	p.more = ""
	if text != "" {
		p.found.Commands = append(p.found.Commands, Command{Section: p.section, Line: number, Text: text})
	}
}

// code is what stands between backquotes, also over the end of a line.
var code = regexp.MustCompile("(?s)`([^`]+)`")

func (p *parser) endParagraph() {
	text := strings.Join(p.paragraph, "\n")
	p.paragraph = nil
	for _, at := range code.FindAllStringSubmatchIndex(text, -1) {
		inline := text[at[2]:at[3]]
		if !begins(inline) {
			continue
		}
		p.found.Commands = append(p.found.Commands, Command{
			Section: p.section, Line: p.began + strings.Count(text[:at[2]], "\n"),
			Text: strings.Join(strings.Fields(inline), " "), Inline: true,
		})
	}
}

// shell is the language of commands in a fence.
const shell = "sh"

// begins says whether a text is a program with arguments.
func begins(text string) bool {
	words := strings.Fields(text)
	return len(words) > 1 && slices.Contains([]string{
		"tenant-executor", "localtenant", "localrunner",
		"apt-get", "cd", "cp", "curl", "dpkg", "export", "go", "jq", "journalctl", "kubectl", "make", "openssl", "sudo", "systemctl", "systemd-analyze",
	}, strings.TrimPrefix(words[0], "bin/"))
}
