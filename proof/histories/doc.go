// Package histories has only tests. Processes use the locks at the same time, some of them are killed and paused, and replies to them are
// lost. The tests check whether a lock that never fails could have produced the history (porcupine), and look for lost
// updates. Holders that go on after their lease must be found. It is part of the proof module so that users do not depend on porcupine.
package histories
