package observe

import "context"

type judgeKey struct{}

// WithJudge is the context for invalidating names, in which judge is called for each that a Guard does not know, with
// what counts it.
func WithJudge(ctx context.Context, judge func(name string, count func())) context.Context {
	return context.WithValue(ctx, judgeKey{}, judge)
}

// Unknown is called when a Guard does not know a name that is invalidated. It counts the name, unless there is a judge.
func Unknown(ctx context.Context, name string, count func()) {
	if judge, is := ctx.Value(judgeKey{}).(func(string, func())); is {
		judge(name, count)
	} else {
		count()
	}
}
