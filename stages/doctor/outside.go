package doctor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// outsideFacts are what is known of a file that shows jobs from outside.
type outsideFacts struct {
	// key is the setting that names it.
	key, path string
	// err is why this user cannot write it.
	err error
}

func lookOutside(_ context.Context, p *patient) Result {
	s := p.settings
	var all []outsideFacts
	if path := s.Metrics.Textfile; path != "" {
		// It is replaced as a whole, so its folder is what counts.
		all = append(all, outsideFacts{"metrics.textfile", path, writableFolder(filepath.Dir(path))})
	}
	if path := s.Log.File; path != "" {
		all = append(all, outsideFacts{"log.file", path, appendable(path)})
	}
	return judgeOutside(all, s.Metrics.Listen)
}

// appendable says why nothing can be added to a file, or why it cannot be made.
// It is not made: it would belong to whoever runs doctor.
func appendable(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if os.IsNotExist(err) {
		return writableFolder(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	return file.Close()
}

func writableFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", path)
	}
	if err := writable(path); err != nil {
		return fmt.Errorf("folder %s: %w", path, err)
	}
	return nil
}

func judgeOutside(all []outsideFacts, listen string) Result {
	var texts, troubles []string
	for _, f := range all {
		if f.err != nil {
			troubles = append(troubles, fmt.Sprintf("%s (%s) cannot be written by this user: %v", f.path, f.key, reason(f.err)))
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", f.path, f.key))
	}
	if len(troubles) > 0 {
		return warning(strings.Join(troubles, "; "), "make the folder and give it to the runner's user, or run doctor as that user; jobs run without it")
	}
	if host, _, err := net.SplitHostPort(listen); err == nil {
		ip := net.ParseIP(host)
		if ip == nil && host != "localhost" || ip != nil && !ip.IsLoopback() {
			texts = append(texts, fmt.Sprintf("warm answers Prometheus at %s, also from other hosts", listen))
		} else {
			texts = append(texts, fmt.Sprintf("warm answers Prometheus at %s", listen))
		}
	}
	if len(texts) == 0 {
		return ok("none is wanted: neither [metrics] nor [log] name any; the command stats needs none")
	}
	return ok("%s", strings.Join(texts, "; "))
}
