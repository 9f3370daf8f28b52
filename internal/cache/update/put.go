package update

import (
	"context"
	"time"
)

// lasting is for how long the proof is kept at most.
func (u *Update) lasting() time.Duration {
	if u.of.Timeout < 0 {
		return time.Hour
	}
	return u.of.Timeout
}

// beginPut announces the update, and reads the epochs that the value will be stamped with.
func (u *Update) beginPut(ctx context.Context) error {
	u.value.Ask(ctx)
	key := u.keys[0]
	cmd, err := u.of.OfKeys.ForgetOne(ctx, "update", key,
		u.of.Keys.BeginPut(u.value.Key(), u.token, u.of.OfKeys.Notice(key), u.lasting()))
	if err != nil {
		return err
	}
	u.generation, _ = cmd.Text()
	u.value.Asked(ctx)
	return nil
}

// endPut ends the update, and stores the value if it may.
func (u *Update) endPut(ctx context.Context) map[string]error {
	key := u.keys[0]
	notice := u.of.OfKeys.Notice(key)
	call := u.of.Keys.EndUpdate(u.value.Key(), u.token, notice)
	f := u.value.Filling(ctx, u.generation)
	if f.TTL > 0 {
		call = u.of.Keys.Put(u.value.Key(), u.token, notice, f)
	}
	cmd, err := u.of.OfKeys.ForgetOne(ctx, "invalidate", key, call)
	if err != nil {
		return map[string]error{key: err}
	}
	if f.TTL > 0 {
		status, err := cmd.Text()
		u.value.Report(ctx, status, err)
	}
	return nil
}
