package script

import "strings"

// quote returns s as one shell word. Plain words stay as they are; others
// become an ANSI-C string, $'…', which bash and busybox sh read (dash does
// not; that is what FF_POSIXLY_CORRECT_ESCAPES is for).
func quote(s string) string {
	if s == "" {
		return "''"
	}
	var out strings.Builder
	out.Grow(len(s) + len(s)/4 + 3)
	plain := true
	for i := range len(s) {
		c := s[i]
		switch {
		case isPlain(c):
			out.WriteByte(c)
			continue
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\t':
			out.WriteString(`\t`)
		case c == '\'' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < ' ' || c > '~':
			const hex = "0123456789abcdef"
			out.WriteString(`\x`)
			out.WriteByte(hex[c>>4])
			out.WriteByte(hex[c&15])
		default:
			out.WriteByte(c)
		}
		plain = false
	}
	if plain {
		return s
	}
	return "$'" + out.String() + "'"
}

func isPlain(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("_-./,@", c) >= 0
}

// quotePosix is quote for shells without ANSI-C strings.
func quotePosix(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
