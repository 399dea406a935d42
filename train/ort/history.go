//go:build cgo

// Results of many steps, read from a device at once.

package ort

import (
	"errors"

	"github.com/miplc/miplc/compile/onnx"
)

const (
	// historyValues is the maximum number of values of a history, and historyRows of its rows.
	historyValues = 1 << 16
	historyRows   = 64
)

// history collects the results of several executions of packed sessions on a device, because reading a
// value of a device waits until it has finished. An execution reads one copy and writes the other.
type history struct {
	memory      *deviceMemory
	copies      [2]values
	current     int // index of the copy with the newest rows
	rows, width int
	unread      []unread
}

// unread is a row of a history that was not read yet.
type unread struct {
	parts map[string]onnx.Part
	take  func(results)
}

// results returns the values of an output of a session for the run with index j; nil if there is no
// such output.
type results func(name string, j int) []float32

// historyRowsFor returns the number of executions whose results one history has, for a number of trials and of
// results of each.
func historyRowsFor(trials, width int) int {
	return min(max(1, historyValues/(trials*width)), historyRows)
}

func newHistory(m *deviceMemory, runs int, p *onnx.Packing) (*history, error) {
	h := &history{memory: m, rows: p.Rows, width: p.Results.Size}
	for i := range h.copies {
		h.copies[i] = values{}
		if err := m.add(h.copies[i], onnx.InHistory, runs, h.rows, h.width); err != nil {
			return h, err
		}
	}
	return h, m.upload(h.copies[0], onnx.InHistory)
}

// choose selects the next row in the packed inputs of an execution.
func (h *history) choose(b *batch) {
	for j := range b.runs {
		slot := b.part(onnx.InSlot, j)
		clear(slot)
		slot[len(h.unread)] = 1
	}
}

// add adds an execution that was started. take receives its results when they are read, at the latest when
// all rows are used.
func (h *history) add(p *onnx.Packing, take func(results)) error {
	h.current = 1 - h.current
	h.unread = append(h.unread, unread{p.Results.Parts, take})
	if len(h.unread) < h.rows {
		return nil
	}
	return h.read()
}

// read reads the results of the executions since it was last called.
func (h *history) read() error {
	if len(h.unread) == 0 {
		return nil
	}
	now := h.copies[h.current]
	if err := h.memory.download(now, onnx.InHistory); err != nil {
		return err
	}
	all, list := now.floats(onnx.InHistory), h.unread
	h.unread = nil
	for row, u := range list {
		u.take(func(name string, j int) []float32 {
			part, ok := u.parts[name]
			if !ok {
				return nil
			}
			return all[(j*h.rows+row)*h.width+part.Start:][:part.Size]
		})
	}
	return nil
}

// Destroy releases both copies.
func (h *history) Destroy() error { return errors.Join(h.copies[0].Destroy(), h.copies[1].Destroy()) }
