package joblog

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// masked is what stands in the log for a secret.
const masked = "[MASKED]"

// mask replaces secrets in what is written to it, also when a secret is split
// over several writes. It holds back the bytes that may be the beginning of a
// secret until more is written or it is closed.
type mask struct {
	to      io.Writer
	rules   [256][]rule // by first byte, longest first
	pending []byte
	// swallow is set behind a token prefix, until the token ends.
	swallow func(byte) bool
}

// rule is a text to look for. A rule with a tail keeps the text and masks the
// bytes behind it for which tail is true.
type rule struct {
	text string
	tail func(byte) bool
}

// newMask masks the phrases, the tokens that begin with one of the prefixes,
// and the values of URL parameters that carry tokens.
func newMask(to io.Writer, phrases, prefixes []string) *mask {
	m := &mask{to: to}
	add := func(r rule) {
		if r.text != "" {
			m.rules[r.text[0]] = append(m.rules[r.text[0]], r)
		}
	}
	for _, p := range phrases {
		add(rule{text: p})
	}
	for _, p := range prefixes {
		add(rule{text: p, tail: inToken})
	}
	for _, name := range []string{
		"private_token", "authenticity_token", "rss_token",
		"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token",
	} {
		for _, before := range []string{"?", "&"} {
			add(rule{text: before + name + "=", tail: inParameter})
			add(rule{text: before + strings.ToLower(name) + "=", tail: inParameter})
		}
	}
	for i := range m.rules {
		slices.SortStableFunc(m.rules[i], func(a, b rule) int { return len(b.text) - len(a.text) })
	}
	return m
}

// DefaultTokenPrefixes begin GitLab's own tokens
// (common/buildlogger/internal/tokensanitizer).
func DefaultTokenPrefixes() []string {
	return []string{
		"glpat-", "gloas-", "gldt-", "glrt-", "glcbt-", "glrtr-", "glptt-", "glft-",
		"glimt-", "glagent-", "glsoat-", "glffct-", "_gitlab_session=", "gltok-",
	}
}

func inToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '='
}

func inParameter(c byte) bool {
	return c > ' ' && c != '&' && c != '"' && c != '\''
}

// Write never fails for want of a complete secret.
func (m *mask) Write(p []byte) (int, error) {
	if err := m.process(append(m.pending, p...), false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes out what was held back.
func (m *mask) Close() error {
	return m.process(m.pending, true)
}

func (m *mask) process(data []byte, final bool) error {
	var out bytes.Buffer
	out.Grow(len(data))
	i := 0
	for i < len(data) {
		if m.swallow != nil {
			if m.swallow(data[i]) {
				i++
				continue
			}
			m.swallow = nil
		}
		r, ok, wait := m.match(data[i:], final)
		if wait {
			break
		}
		switch {
		case !ok:
			out.WriteByte(data[i])
			i++
		case r.tail == nil:
			out.WriteString(masked)
			i += len(r.text)
		default:
			out.WriteString(r.text + masked)
			i += len(r.text)
			m.swallow = r.tail
		}
	}
	m.pending = append([]byte(nil), data[i:]...)
	_, err := m.to.Write(out.Bytes())
	return err
}

// match finds the longest rule at the beginning of data. wait means that data
// ends inside a rule, so that nothing can be said yet.
func (m *mask) match(data []byte, final bool) (found rule, ok, wait bool) {
	for _, r := range m.rules[data[0]] {
		if len(data) < len(r.text) {
			if !final && strings.HasPrefix(r.text, string(data)) {
				return rule{}, false, true
			}
			continue
		}
		if string(data[:len(r.text)]) == r.text {
			return r, true, false
		}
	}
	return rule{}, false, false
}
