package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hashLength is how many hex digits keep two cut values apart.
const hashLength = 8

// LabelValue makes a label value of any text: "" stays "", a valid value stays
// as it is. Otherwise characters that are not allowed become "-", and where
// that or the cut to 63 characters loses something, a hash of the text keeps
// two texts apart.
func LabelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])[:hashLength]
	kept := strings.Map(func(r rune) rune {
		if labelRune(r) {
			return r
		}
		return '-'
	}, text)
	kept = strings.TrimLeft(kept, "-_.")
	if room := validation.LabelValueMaxLength - hashLength - 1; len(kept) > room {
		kept = kept[:room]
	}
	kept = strings.TrimRight(kept, "-_.")
	if kept == "" {
		return hash
	}
	return kept + "-" + hash
}

// runnerLabelValue makes a label value as the kubernetes executor does
// (executors/kubernetes/util.go:476), for the labels that both set: selectors
// written for the one have to find the Pods of the other. It can make two
// texts equal, so nothing of ours rests on it.
func runnerLabelValue(text string) string {
	const edge = "-_."
	text = strings.Trim(strings.Map(func(r rune) rune {
		if labelRune(r) {
			return r
		}
		return '_'
	}, text), edge)
	if len(text) > validation.LabelValueMaxLength {
		text = text[:validation.LabelValueMaxLength]
	}
	return strings.Trim(text, edge)
}

func labelRune(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		return true
	}
	return false
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// sentID is an id that GitLab may not have sent, "" then.
func sentID(n int64) string {
	if n == 0 {
		return ""
	}
	return decimal(n)
}
