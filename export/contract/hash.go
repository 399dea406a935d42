package contract

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Hash is the SHA-256, in hexadecimal, of what a caller of a model relies on: how bags
// are fed, the shape of an instance, the class names in their order. A model that was
// trained anew on the same classes keeps it.
func (m *Metadata) Hash() string {
	text, err := json.Marshal([]any{m.Contract, m.InputShape, m.Classes})
	if err != nil {
		panic(fmt.Sprintf("bug: strings and whole numbers as JSON: %v", err)) // nothing else is in there
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
