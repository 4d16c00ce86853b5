package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"
)

// FileError is a certificate or key file that cannot be used.
type FileError struct {
	Path string
	Err  error
}

// Error names the file and what is the matter with it.
func (e *FileError) Error() string {
	// The path is said once.
	var failed *fs.PathError
	if errors.As(e.Err, &failed) && failed.Path == e.Path {
		return fmt.Sprintf("%s: %v", e.Path, failed.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

// Unwrap is the error of the file system, or what is the matter with the file.
func (e *FileError) Unwrap() error { return e.Err }

// ValidityError is a client certificate whose time has passed or has not come.
type ValidityError struct {
	NotBefore, NotAfter, Now time.Time
	// Skew is how far the cluster's clock is ahead of this host's, 0 if that
	// is little or not known.
	Skew time.Duration

	config Config
}

// Error says when the certificate is valid, and whose clock may be wrong.
func (e *ValidityError) Error() string {
	text := "the certificate expired on " + day(e.NotAfter) + ": replace it"
	if e.Now.Before(e.NotBefore) {
		text = "the certificate is valid from " + day(e.NotBefore) + " on, and this host's clock says " + day(e.Now)
	}
	if e.Skew != 0 {
		return text + "; " + skewText(e.Skew)
	}
	return text
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// credentials are what the certificate files hold.
type credentials struct {
	ca, cert, key string
	// until is when the client certificate expires.
	until time.Time
}

// readCredentials reads the files and finds out now what client-go would only
// write to its log when the first connection is made, and what the cluster
// would only answer with "Unauthorized".
func readCredentials(c Config, now time.Time) (credentials, error) {
	var found credentials
	var err error
	if found.ca, err = readPEM(c.CAFile, "CERTIFICATE"); err != nil {
		return credentials{}, err
	}
	if c.TokenFile != "" {
		return found, checkToken(c.TokenFile)
	}
	if found.cert, err = readPEM(c.CertFile, "CERTIFICATE"); err != nil {
		return credentials{}, err
	}
	if err := checkPrivate(c.KeyFile); err != nil {
		return credentials{}, err
	}
	if found.key, err = readPEM(c.KeyFile, "PRIVATE KEY"); err != nil {
		return credentials{}, err
	}
	pair, err := tls.X509KeyPair([]byte(found.cert), []byte(found.key))
	if err != nil {
		return credentials{}, &FileError{Path: c.CertFile, Err: fmt.Errorf("with the key %s: %w", c.KeyFile, err)}
	}
	found.until = pair.Leaf.NotAfter
	return found, checkValidity(c, pair.Leaf, now)
}

// checkValidity refuses a client certificate whose time has passed or has not
// come.
func checkValidity(c Config, leaf *x509.Certificate, now time.Time) error {
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return &FileError{Path: c.CertFile, Err: &ValidityError{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, Now: now, config: c}}
	}
	return nil
}

// certificates are all those of a PEM text that can be read.
func certificates(text string) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, cert)
		}
	}
	return all
}

// readPEM reads a file with at least one PEM block of a kind, and says what it
// is if it is something else. The kind of a key may have a word before it.
func readPEM(path, kind string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", &FileError{Path: path, Err: err}
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if bytes.HasSuffix([]byte(block.Type), []byte(kind)) {
			if kind != "CERTIFICATE" {
				return string(text), nil
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				return "", &FileError{Path: path, Err: fmt.Errorf("its certificate is damaged: %w", err)}
			}
			return string(text), nil
		}
	}
	what := "it holds no " + map[string]string{"CERTIFICATE": "certificate", "PRIVATE KEY": "private key"}[kind] + " (PEM)"
	return "", &FileError{Path: path, Err: errors.New(what + insteadOfPEM(text))}
}

// insteadOfPEM says what a file is that should be PEM, and what to do then; ""
// for what nobody knows.
func insteadOfPEM(text []byte) string {
	const loopback = "the tenant cluster's loopback address takes a client certificate: ask for one, or write the one you have into PEM files"
	matches := func(expression string) bool { return regexp.MustCompile(expression).Match(text) }
	config := matches(`(?m)^(apiVersion:|kind: *Config|clusters:)`)
	switch {
	case config && matches(`(?m)^\s+(token|tokenFile):`):
		return ", it is a kubeconfig with a bearer token; " + loopback
	case config:
		return ", it is a kubeconfig: decode its certificate-authority-data, client-certificate-data and client-key-data (base64) into three files"
	case matches(`^\s*(eyJ[\w-]+\.[\w-]+\.[\w-]*|[\w.~+/=-]{16,})\s*$`):
		// A JSON web token, or another word of some length and nothing else.
		return ", it is a bearer token; " + loopback
	}
	return ""
}

// privateMode are the bits that the mode of a secret file must not have.
const privateMode = 0o077

// checkPrivate refuses a secret that other users of the host can read.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &FileError{Path: path, Err: err}
	}
	if mode := info.Mode().Perm(); mode&privateMode != 0 {
		return &FileError{Path: path, Err: fmt.Errorf("others can read it (mode %04o): give it to the runner's user and chmod 600 it; if others had access to this host, have a new one issued", mode)}
	}
	return nil
}

// checkToken reads the token once, so that a missing one is told at the start.
// Its mode is the kubelet's.
func checkToken(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = errors.New("it is empty; it should hold the service account's token")
	}
	if err != nil {
		return &FileError{Path: path, Err: err}
	}
	return nil
}
