// Package histories has only tests. Processes use the locks at the same time, and some of them are killed and paused.
// The tests check whether a lock that never fails could have produced the history (porcupine), and look for lost
// updates. It is part of the bench module so that users do not depend on porcupine.
package histories
