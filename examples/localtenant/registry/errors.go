package registry

import (
	"encoding/json"
	"net/http"
)

// errorDocument is the body of an error as the OCI distribution specification
// wants it ("Error Codes").
type errorDocument struct {
	Errors []errorEntry `json:"errors"`
}

type errorEntry struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// replyError answers with a status and an error document.
func replyError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that has gone away needs no answer.
	_ = json.NewEncoder(w).Encode(errorDocument{[]errorEntry{{Code: code, Message: message}}})
}
