package model

// WriteNotes TODO
func WriteNotes() error { return nil }
