// Package histories has tests alone: processes that use the locks at the same time, some of which are killed and paused,
// and what they did is checked for being possible with a lock that never fails (porcupine), and for lost updates. It is
// a part of the bench module so that porcupine is nobody's dependency.
package histories
