package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestKeyboard(t *testing.T) {
	for typed, want := range map[string]string{
		"ls\rexit\r": "ls\rexit\r", "~.": "!", "ls\r~.rest": "ls\r!", "a~.\r": "a~.\r", "~~.\r": "~.\r", "~/x\r": "~/x\r",
		"~": "", "\r~\r~.": "\r~\r!", "~~~.": "~~.",
	} {
		for _, slow := range []bool{false, true} {
			var in io.Reader = strings.NewReader(typed)
			if slow {
				in = iotest.OneByteReader(in)
			}
			hung := ""
			got, err := io.ReadAll(&keyboard{from: in, hangUp: func() { hung = "!" }})
			// What was typed in one go before the "~." need not arrive.
			if err != nil || slow && string(got)+hung != want || !strings.HasSuffix(want, string(got)+hung) && !strings.HasPrefix(want, string(got)) {
				t.Errorf("%q: got %q, want %q (%v)", typed, string(got)+hung, want, err)
			}
		}
	}
}
