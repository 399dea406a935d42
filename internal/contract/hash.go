// Which models can replace each other.

package contract

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// ContractHash returns the SHA-256, in hexadecimal, of everything that callers of a model depend
// on: the signature, the shape of an instance, the class names in order, whether a bag has one
// label or any number of them, and whether there is an attention of each class. A model retrained
// on the same classes has the same hash.
func (m *Metadata) ContractHash() string {
	parts := []any{m.Contract, m.InputShape, m.Classes}
	if m.Threshold != nil {
		parts = append(parts, "any number of labels")
	}
	if m.ClassAttention {
		parts = append(parts, ClassAttention)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		panic(fmt.Sprintf("bug: strings and whole numbers as JSON: %v", err)) // marshalling these types cannot fail
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
