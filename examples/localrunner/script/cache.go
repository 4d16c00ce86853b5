package script

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// cacheFile is where the archive of one cache key is, relative to the project
// folder. alternate is the place under the key's hash, where the helper also
// looks (FF_HASH_CACHE_KEYS).
type cacheFile struct {
	key, archive, alternate string
}

func (w *writer) cacheFile(rawKey string) (cacheFile, error) {
	key, err := sanitizeKey(rawKey)
	if err != nil {
		return cacheFile{}, err
	}
	if key != rawKey {
		w.warnf("cache key %q sanitized to %q", rawKey, key)
	}
	if key == "" {
		return cacheFile{}, errors.New("empty cache key")
	}
	sum := sha256.Sum256([]byte(key))
	f := cacheFile{key: key}
	if f.archive, err = w.archive(key); err != nil {
		return cacheFile{}, err
	}
	f.alternate, err = w.archive(hex.EncodeToString(sum[:]))
	return f, err
}

func (w *writer) archive(key string) (string, error) {
	return filepath.Rel(w.b.ProjectDir(), path.Join(w.b.CacheDir(), key, "cache.zip"))
}

// key is the user's key with its variables filled in, or job name and ref.
func (w *writer) key(c job.Cache) string {
	if c.Key == "" {
		return path.Join(w.b.Job.Info.Name, w.b.Job.Git.Ref)
	}
	return w.b.Variables().ExpandValue(c.Key)
}

// sanitizeKey keeps a key from leaving the cache folder: it undoes URL
// encoding of "/" and ".", resolves "..", and drops blanks and empty parts at
// the end (cache/cachekey/cachekey.go).
func sanitizeKey(key string) (string, error) {
	if key == "" {
		return "", nil
	}
	decoded := strings.NewReplacer("%2f", "/", "%2F", "/", "%2e", ".", "%2E", ".", `\`, "/").Replace(key)
	clean := strings.TrimPrefix(path.Clean("/"+decoded), "/")
	clean = strings.TrimRightFunc(clean, func(r rune) bool { return r == '/' || unicode.IsSpace(r) })
	if clean == "" {
		return "", fmt.Errorf("cache key %q could not be sanitized", key)
	}
	return clean, nil
}

// policy reports whether the cache is to be transferred in that direction,
// "pull" or "push".
func (w *writer) policy(c job.Cache, direction string) (bool, error) {
	switch p := w.b.Variables().ExpandValue(c.Policy); p {
	case "", "pull-push":
		return true, nil
	case "pull", "push":
		return p == direction, nil
	default:
		return false, fmt.Errorf("unknown cache policy %s for %s", p, w.key(c))
	}
}

func (w *writer) restoreCache() error {
	w.enter()
	due := false
	for _, c := range w.b.Job.Cache {
		if len(c.Paths) == 0 && !c.Untracked {
			continue
		}
		due = true
		if err := w.restoreOne(c); err != nil {
			return err
		}
	}
	if !due {
		return ErrNothingToDo
	}
	w.giveAway(w.b.CacheDir(), w.b.BuildsDir())
	return nil
}

func (w *writer) restoreOne(c job.Cache) error {
	wanted, err := w.policy(c, "pull")
	if err != nil {
		return err
	}
	file, err := w.cacheFile(w.key(c))
	if err != nil {
		w.noticef("Skipping cache extraction due to %v", err)
		return nil
	}
	if !wanted {
		w.noticef("Not downloading cache %s due to policy", file.key)
		return nil
	}
	files := []cacheFile{file}
	for _, fallback := range w.fallbackKeys(c) {
		f, err := w.cacheFile(fallback)
		if err != nil {
			w.noticef("Skipping cache extraction due to %v", err)
			continue
		}
		files = append(files, f)
	}
	w.withHelper("Extracting cache", func() { w.extract(files) })
	return nil
}

func (w *writer) fallbackKeys(c job.Cache) []string {
	vars := w.b.Variables()
	var keys []string
	for _, k := range c.FallbackKeys {
		if k = vars.ExpandValue(k); k != "" {
			keys = append(keys, k)
		}
	}
	global := vars.Value("CACHE_FALLBACK_KEY")
	switch {
	case global == "":
	case strings.HasSuffix(strings.TrimRight(global, ". "), "-protected"):
		// Caches of protected branches are not for other branches.
		w.warnf("CACHE_FALLBACK_KEY %q not allowed to end in %q", global, "-protected")
	default:
		keys = append(keys, global)
	}
	return keys
}

// extract tries the first key, and the next ones when that fails.
func (w *writer) extract(files []cacheFile) {
	f := files[0]
	args := []string{
		helper, "cache-extractor",
		"--file", f.archive,
		"--timeout", strconv.Itoa(w.b.CacheRequestTimeout()),
	}
	if u := w.cacheURL(f.key); u != "" {
		args = append(args, "--url", u)
	}
	w.noticef("Checking cache for %s...", f.key)
	w.ifElse(w.words(args...), func() {
		w.noticef("Successfully extracted cache")
	}, func() {
		w.warnf("Failed to extract cache")
		if len(files) > 1 {
			w.extract(files[1:])
		}
	})
}

func (w *writer) cacheURL(key string) string {
	if w.b.CacheURL == nil {
		return ""
	}
	return w.b.CacheURL(key)
}

func (w *writer) archiveCache(success bool) error {
	w.enter()
	due := false
	for _, c := range w.b.Job.Cache {
		if !job.Applies(c.When, success) || len(c.Paths) == 0 && !c.Untracked {
			continue
		}
		due = true
		if err := w.archiveOne(c); err != nil {
			return err
		}
	}
	if !due {
		return ErrNothingToDo
	}
	return nil
}

func (w *writer) archiveOne(c job.Cache) error {
	wanted, err := w.policy(c, "push")
	if err != nil {
		return err
	}
	file, err := w.cacheFile(w.key(c))
	if err != nil {
		w.noticef("Skipping cache archiving due to %v", err)
		return nil
	}
	if !wanted {
		w.noticef("Not uploading cache %s due to policy", file.key)
		return nil
	}
	args := []string{
		helper, "cache-archiver",
		"--file", file.archive,
		"--alternate-file", file.alternate,
		"--timeout", strconv.Itoa(w.b.CacheRequestTimeout()),
	}
	for _, p := range c.Paths {
		args = append(args, "--path", p)
	}
	if c.Untracked {
		args = append(args, "--untracked")
	}
	if u := w.cacheURL(file.key); u != "" {
		args = append(args, "--url", u)
	}
	env := w.temp(cacheEnvFile)
	args = append(args, "--env-file", env)
	w.withHelper("Creating cache", func() {
		w.noticef("Creating cache %s...", file.key)
		w.linef("printf '%%s\\n' %s >%s", w.quote(metadata(file.key)), w.quote(env))
		w.ifElse(w.words(args...), func() {
			w.noticef("Created cache")
		}, func() {
			w.warnf("Failed to create cache")
		})
		w.removeFile(env)
	})
	return nil
}

// metadata is a line in the form of a dotenv file.
func metadata(key string) string {
	blob, err := json.Marshal(map[string]string{"cachekey": key})
	if err != nil {
		panic("a map of strings cannot fail to marshal: " + err.Error())
	}
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(blob))
	return `CACHE_METADATA="` + escaped + `"`
}
