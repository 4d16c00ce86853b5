package stages

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// expiryNotice is how long before its end a certificate is spoken of.
	expiryNotice = 14 * 24 * time.Hour
	// expiryPause is how long it is not spoken of again.
	expiryPause = 24 * time.Hour
)

// warnOfExpiry warns of a client certificate that will soon expire, once a
// day. Cleanup calls it: what cleanup says goes to the runner's own log, whose
// reader can do something about it (executors/custom/custom.go, Cleanup).
// Without a state folder it warns each time.
func (d *Driver) warnOfExpiry() {
	until, file := d.cluster.Expiry()
	now := d.clock.Now()
	if until.IsZero() || until.Sub(now) > expiryNotice {
		return
	}
	// The file's name and the date make a new certificate a new warning.
	sum := sha256.Sum256([]byte(file + "\x00" + until.Format(time.RFC3339)))
	note := "expiry-" + hex.EncodeToString(sum[:8])
	if data, err := d.state.ReadFile(note); err == nil {
		if last, err := time.Parse(time.RFC3339, string(data)); err == nil && now.Sub(last) < expiryPause && !last.After(now) {
			return
		}
	}
	d.log.Warn("the client certificate %s expires on %s, in %d days; replace it before that, jobs that run need not stop for it",
		file, until.UTC().Format("2006-01-02 15:04 UTC"), int(until.Sub(now)/(24*time.Hour)))
	d.forgetExpiries(note)
	// What cannot be written is said again: the folder needs a look as well.
	_ = d.state.WriteFile(note, []byte(now.UTC().Format(time.RFC3339)))
}

// forgetExpiries removes the notes of certificates of long ago, so that the
// folder does not fill with them.
func (d *Driver) forgetExpiries(but string) {
	names, err := d.state.List("expiry-")
	if err != nil {
		return
	}
	for _, name := range names {
		data, err := d.state.ReadFile(name)
		if err != nil || name == but {
			continue
		}
		if last, err := time.Parse(time.RFC3339, string(data)); err != nil || d.clock.Now().Sub(last) > 2*expiryNotice {
			_ = d.state.Remove(name)
		}
	}
}
