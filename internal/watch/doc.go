// Package watch says what goes on in a Guard: the Journal logs what an operator should know, the Observer counts for
// package admin. It does not know the Guard, only what its Config asks for.
package watch
