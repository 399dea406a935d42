// Entries of lists: a word with arguments.

package schema

import "strings"

// Entry is an entry of a list: a word and its arguments, written as a plain word, word: value or word: {arguments}.
type Entry struct {
	Word *Node
	Args *Node // nil for a plain word
}

// ReadEntry splits one item of a list; what is the noun for messages.
func (r *Reader) ReadEntry(n *Node, what string) (Entry, bool) {
	switch {
	case n.kind == scalarNode && n.tag == "!!str":
		return Entry{Word: n}, true
	case n.kind == mapNode && len(n.keys) == 1:
		e := Entry{Word: n.keys[0], Args: n.items[0]}
		if e.Args.IsNull() {
			r.faults.Add(e.Word.Errorf("%s has no value", e.Word.text).WithNote("leave out the colon for a plain %s",
				e.Word.text))
			return e, false
		}
		return e, true
	case n.kind == mapNode && len(n.keys) > 1:
		r.faults.Add(n.keys[1].Errorf("a list item has two %ss, %s and %s", what, n.keys[0].text, n.keys[1].text).
			WithNote("start each %s with a dash; arguments are indented deeper or in braces", what))
		return Entry{}, false
	case n.kind == mapNode:
		return Entry{}, false // empty, or emptied by an error reported before
	}
	r.faults.Add(n.Errorf("a %s is a word, word: value or word: {arguments}, not %s", what, n.Describe()))
	return Entry{}, false
}

// List returns the items of a list; it reports a node that is not a list.
func (r *Reader) List(n *Node, path, what string) []*Node {
	if n.kind != listNode {
		r.faults.Add(n.Errorf("%s must be a list of %s, not %s", path, what, n.Describe()).WithNote("start each with a dash"))
		return nil
	}
	return n.items
}

// UnknownWord reports a word that is not one of known.
func (r *Reader) UnknownWord(word *Node, what string, known []string) {
	r.faults.Add(noteStrangeCharacter(word.Errorf("unknown %s %q", what, word.text), word.text).
		SuggestOr(r.dialect.Suggest(word.text, known), "known: %s", strings.Join(known, ", ")))
}

// Args decodes the arguments of an entry. The result has every argument; those not
// written have their default and no position. Arguments of type Expression are left to the caller.
func (r *Reader) Args(word string, rows []Row, e Entry) map[string]Arg {
	args := map[string]Arg{}
	for i := range rows {
		args[rows[i].Name] = rows[i].defaultArg()
	}
	given := map[string]bool{} // or meant
	switch {
	case e.Args == nil:
	case e.Args.kind == mapNode:
		for i, key := range e.Args.keys {
			if row := Find(rows, key.text); row != nil {
				given[row.Name] = true
				r.argument(args, row, word+"."+row.Name, key, e.Args.items[i])
			} else {
				given[r.unknownKey(key, rows, word)] = true
			}
		}
	default:
		main := MainRow(rows)
		if main == nil {
			d := e.Args.Errorf("%s takes no value", word)
			if len(rows) > 0 {
				d = e.Args.Errorf("%s needs its arguments by name", word).
					WithNote("write %s: {%s: ..., ...}; known: %s", word, rows[0].Name, strings.Join(Words(rows), ", "))
			}
			r.faults.Add(d)
			return args
		}
		given[main.Name] = true
		r.argument(args, main, word+"."+main.Name, e.Word, e.Args)
	}
	for i := range rows {
		if row := &rows[i]; row.Required && !given[row.Name] {
			r.faults.Add(e.Word.Errorf("%s needs %s", word, row.Name).WithNote("%s: %s", row.Name, Plain(row.Doc)))
		}
	}
	return args
}

func (r *Reader) argument(args map[string]Arg, row *Row, path string, key, n *Node) {
	if n.IsNull() {
		r.faults.Add(key.Errorf("%s has no value", path).WithNote("expected %s", row.DescribeType()))
		return
	}
	if row.Type == Expression {
		return
	}
	if a, ok := r.Value(row, path, n); ok {
		args[row.Name] = a
	}
}

// EachName walks over a map whose keys are names that the document defines. check
// reports a key that cannot be a name; null values are reported too.
func (r *Reader) EachName(n *Node, path string, check func(key *Node), each func(name Str, value *Node)) {
	if n.kind != mapNode {
		r.faults.Add(n.Errorf("%s must be a map of names, not %s", path, n.Describe()))
		return
	}
	for i, key := range n.keys {
		name := Str{V: key.text, Pos: key.pos}
		r.keys = append(r.keys, keyAt{join(path, name.V), name.Pos})
		check(key)
		if value := n.items[i]; value.IsNull() {
			r.faults.Add(key.Errorf("%s.%s has no value", path, key.text))
		} else {
			each(name, value)
		}
	}
}
