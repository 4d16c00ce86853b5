package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/socialweb-computer/tenant-executor/examples/localtenant/deps"
)

// apt asks the machine's apt, as it is configured, for packages. Its own
// state is in a folder of ours, so the machine's is read and never changed.
type apt struct {
	run    commands
	folder string // of downloaded packages and kept answers; may be removed at any time
}

// archive is one package file as apt names it; the version is in File.
type archive struct {
	File string `json:"file"`
	Hash string `json:"hash"`
}

// aptError is a failure that a refresh of apt's package lists may cure.
type aptError struct {
	what string
	err  error
}

func (e *aptError) Error() string {
	return fmt.Sprintf("%s: %v (run \"apt-get update\" as root; if that fails, check /etc/apt and the network)", e.what, e.err)
}

func (e *aptError) Unwrap() error { return e.err }

// closure returns the packages and everything they depend on, as apt would
// install them on a machine that has nothing yet, without recommendations.
func (a *apt) closure(ctx context.Context, packages []string) ([]archive, error) {
	// apt needs a second or two for this, which is too long for a build that
	// finds all its layers. The answer holds until the lists change.
	kept, err := a.answerFile(ctx, packages)
	if err != nil {
		return nil, err
	}
	var found []archive
	if text, err := os.ReadFile(kept); err == nil && json.Unmarshal(text, &found) == nil && len(found) > 0 {
		return found, nil
	}
	// apt does not name what it finds downloaded already, so it must look
	// into an empty folder. ForceHash: by default it gives the weakest hash.
	output, err := a.install(ctx, packages, filepath.Join(a.folder, "nothing"),
		"--print-uris", "--option=Acquire::ForceHash=SHA256")
	if err != nil {
		return nil, err
	}
	if found, err = parseURIs(output); err != nil {
		return nil, err
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, fmt.Errorf("keep apt's answer: %w", err)
	}
	if err := writeAtomic(kept, text); err != nil {
		return nil, fmt.Errorf("keep apt's answer: %w", err)
	}
	return found, nil
}

// parseURIs reads lines like 'URI' FILE SIZE HASH.
func parseURIs(output []byte) ([]archive, error) {
	var found []archive
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "'") || !strings.HasSuffix(fields[1], ".deb") {
			return nil, fmt.Errorf("apt-get --print-uris: cannot read the line %q", strings.TrimSpace(line))
		}
		found = append(found, archive{File: fields[1], Hash: fields[3]})
	}
	if len(found) == 0 {
		return nil, errors.New("apt-get --print-uris named no package")
	}
	return found, nil
}

// answerFile names the file for apt's answer to this question in its present
// state.
func (a *apt) answerFile(ctx context.Context, packages []string) (string, error) {
	output, err := a.run.output(ctx, "", nil, "apt-config", "shell",
		"lists", "Dir::State::lists/d", "etc", "Dir::Etc/d")
	if err != nil {
		return "", fmt.Errorf("ask apt for its folders (is this a Debian machine?): %w", err)
	}
	sum := sha256.New()
	fmt.Fprintln(sum, packages)
	for line := range strings.Lines(string(output)) { // name='/folder/'
		_, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		folder := strings.Trim(value, "'")
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			// apt's locks and half downloads come and go, and some files may
			// be for root alone: what cannot be read decides nothing.
			if err != nil || d.IsDir() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("look at apt's state in %s: %w", folder, err)
		}
	}
	return filepath.Join(a.folder, "closure-"+hex.EncodeToString(sum.Sum(nil))[:32]+".json"), nil
}

// download fetches the packages and all they depend on, unless they are there
// from an earlier time; apt checks their hashes. It returns their folder.
func (a *apt) download(ctx context.Context, packages []string) (string, error) {
	archives := filepath.Join(a.folder, "archives")
	_, err := a.install(ctx, packages, archives, "--download-only")
	return archives, err
}

// install runs apt-get install for a machine without any package, with a
// folder for the package files and the options that say what to do.
func (a *apt) install(ctx context.Context, packages []string, archives string, mode ...string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for packages: %w", err)
	}
	nothing := filepath.Join(a.folder, "no-packages")
	if err := os.WriteFile(nothing, nil, 0o644); err != nil {
		return nil, fmt.Errorf("make an empty package state: %w", err)
	}
	args := []string{
		"install", "--quiet=2", "--assume-yes", "--no-install-recommends",
		"--option=Dir::State::status=" + nothing,
		"--option=Dir::State::extended_states=" + nothing,
		"--option=Dir::Cache=" + a.folder,
		"--option=Dir::Cache::archives=" + archives,
		"--option=APT::Sandbox::User=root", // apt's own user may not enter our folder
		"--option=Debug::NoLocking=true",   // the lock would be that of the machine's dpkg
		"--option=Acquire::Retries=3",
	}
	args = append(append(append(args, mode...), "--"), packages...)
	output, err := a.run.output(ctx, "", nil, "apt-get", args...)
	var failed *commandError
	if errors.As(err, &failed) {
		return nil, &aptError{what: "apt-get install " + mode[0], err: err}
	}
	return output, err
}

// update refreshes the machine's package lists.
func (a *apt) update(ctx context.Context) error {
	program, args := deps.Apt("update", "--quiet=2")
	if _, err := a.run.output(ctx, "", nil, program, args...); err != nil {
		return fmt.Errorf("refresh apt's package lists: %w", err)
	}
	return nil
}
