package bounded_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/socialweb-computer/tenant-executor/kube/bounded"
)

// Up to the limit everything is kept; one byte more is an error, and what came
// before is still there.
func TestBuffer(t *testing.T) {
	for name, b := range map[string]*bounded.Buffer{"short": {}, "other": {Most: 1000}} {
		t.Run(name, func(t *testing.T) {
			most := b.Most
			if most == 0 {
				most = bounded.Short
			}
			whole := strings.Repeat("x", most)
			for _, part := range []string{whole[:most/2], whole[most/2:]} {
				if n, err := io.WriteString(b, part); n != len(part) || err != nil {
					t.Fatalf("%d of %d bytes, %v", n, len(part), err)
				}
			}
			for range 2 {
				n, err := io.WriteString(b, "yz")
				if long := new(bounded.TooLongError); n != 0 || !errors.As(err, &long) || long.Most != most {
					t.Errorf("a write beyond the limit: %d, %v", n, err)
				}
			}
			if b.String() != whole {
				t.Errorf("%d bytes were kept, want %d", len(b.String()), most)
			}
			b.Reset()
			if n, err := io.WriteString(b, whole+"z"); n != most || err == nil || b.String() != whole {
				t.Errorf("after a reset: %d, %v", n, err)
			}
		})
	}
}

func TestReadAll(t *testing.T) {
	failed := errors.New("broken")
	for _, test := range []struct {
		name string
		from io.Reader
		want string
		long bool
		err  error
	}{
		{"nothing", strings.NewReader(""), "", false, nil},
		{"the most", strings.NewReader("12345"), "12345", false, nil},
		{"one more", strings.NewReader("123456"), "12345", true, nil},
		{"without an end", io.MultiReader(strings.NewReader("12345"), endless{}), "12345", true, nil},
		{"broken off", io.MultiReader(strings.NewReader("123"), failing{failed}), "123", false, failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := bounded.ReadAll(test.from, 5)
			long := new(bounded.TooLongError)
			if string(got) != test.want || errors.As(err, &long) != test.long || !test.long && !errors.Is(err, test.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
