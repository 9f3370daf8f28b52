// Package alarm wakes a goroutine when it is due. On Linux an idle Go program rounds timers to the millisecond, as it waits
// for them in epoll; an alarm comes within some tens of microseconds. Only tests and bench import it.
package alarm

import "time"

// Sleep sleeps until due. Its error says that the alarm was closed, before or meanwhile.
func (a *Alarm) Sleep(due time.Time) error {
	for {
		d := time.Until(due)
		if d <= 0 {
			return nil
		}
		if err := a.sleep(d); err != nil {
			return err
		}
	}
}
