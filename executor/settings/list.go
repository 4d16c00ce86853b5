package settings

// List is a list of which one alone may be written without brackets:
// "always" or ["always", "never"].
type List []string

// UnmarshalText takes the one that stands alone.
func (l *List) UnmarshalText(text []byte) error {
	*l = List{string(text)}
	return nil
}
