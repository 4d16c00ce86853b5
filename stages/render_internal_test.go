package stages

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSecretsAreMasked(t *testing.T) {
	secret := &corev1.Secret{
		Data:       map[string][]byte{"password": []byte("hidden-1")},
		StringData: map[string]string{"token": "hidden-2"},
	}
	text, err := json.Marshal(maskedSecret(secret))
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"hidden", "aGlkZGVu"} {
		if strings.Contains(string(text), value) {
			t.Errorf("a value is shown: %s", text)
		}
	}
	if want := `"stringData":{"password":"[MASKED]","token":"[MASKED]"}`; !strings.Contains(string(text), want) || !strings.Contains(string(text), `"kind":"Secret"`) {
		t.Errorf("got %s, want %s in it", text, want)
	}
	if string(secret.Data["password"]) != "hidden-1" {
		t.Error("the Secret itself was changed")
	}
}
