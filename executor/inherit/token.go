package inherit

import "regexp"

// shortLength is how much of a token the runner shows
// (helpers/shorten_token.go).
const shortLength = 9

// ShortToken is what the runner calls itself by a token: without the prefix
// that tells its kind, cut, and with a letter where a label needs one
// (helpers/shorten_token.go).
func ShortToken(token string) string {
	for _, prefix := range []string{`^(glrt-(t[123]_)?|t[123]_|glrtr-)`, `^glcbt-`, `^GR[0-9A-Fa-f]{7}`} {
		token = regexp.MustCompile(prefix).ReplaceAllString(token, "")
	}
	short := []byte(token[:min(len(token), shortLength)])
	if len(short) == 0 {
		return ""
	}
	if !alphanumeric(short[0]) {
		short = append([]byte{'r'}, short[:len(short)-1]...)
	}
	if last := len(short) - 1; !alphanumeric(short[last]) {
		short[last] = 'r'
	}
	return string(short)
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
