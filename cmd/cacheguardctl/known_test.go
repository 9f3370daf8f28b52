package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestCheckNamesWhatIsInvalidatedAndNoInstanceHas(t *testing.T) {
	t.Parallel()
	first := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-1","tags":["category"],"keys":["price"],
		"unknown_tags":{"categroy":2,"list":1},"unknown_keys":{"prodcut":3,"product":1},"caches":[{"name":""}]}]}`)
	second := pageOf(t, `{"guards":[{"prefix":"shop","instance":"shop-2","tags":["list"],"keys":[],"unknown_keys":{"price":1},"caches":[{"name":"product"}]}]}`)
	r := ctl(t, at(shared), "--prefix", "shop", "check", "--page", first+","+second)
	r.want(t, done, `tags like "categroy" were invalidated (2), and no load of these instances has had one`, `keys like "prodcut" were invalidated (3)`)
	expect.Equal(t, "findings", strings.Count(r.out, "were invalidated"), 2)
}

func TestWhatIsMistypedDoesNotLookLikeSuccess(t *testing.T) {
	t.Parallel()
	prefix := "test-" + rand.Text()
	guard := newGuard(t, shared.Client(t), prefix)
	page := pageOf(t, `{"guards":[{"prefix":"`+prefix+`","tags":["category","all"],"keys":[],"caches":[{"name":"","answers":{}},{"name":"product"}]},
		{"prefix":"other","tags":["categroy"],"keys":["prodcut"],"caches":[{"name":"","answers":{"hit":1}},{"name":"prodcut"}]}]}`)
	old := pageOf(t, `{"guards":[{"prefix":"old","caches":[{"name":"","answers":{"hit":1}}]}]}`)
	for _, test := range []struct {
		prefix string
		args   []string
		want   string
	}{
		{prefix, []string{"a"}, "invalidated  a\n"},
		{prefix, []string{"a"}, "invalidated  a  nothing was there\n"},
		{prefix, []string{"product:1", "prodcut:1", "--page", page}, "invalidated  product:1  nothing was there\ninvalidated  prodcut:1  nothing was there\n" +
			`note: no page shows a Cache that the key "prodcut:1" could be of` + "\n"},
		{prefix, []string{"--cache", "product", "--cache", "prodcut", "--page", page}, "invalidated cache  product\ninvalidated cache  prodcut\n" +
			`note: no page shows a Cache with the Name "prodcut"` + "\n"},
		{prefix, []string{"--tag", "category:shoes", "--tag", "categroy:shoes", "--page", page}, "invalidated tag  category:shoes\ninvalidated tag  categroy:shoes\n" +
			`note: no load of these instances has had the tag "categroy:shoes", or one like it` + "\n"},
		{"old", []string{"x", "--tag", "x", "--page", old}, "invalidated      x  nothing was there\ninvalidated tag  x\n"},
		{prefix + "s", []string{"--all", "--yes", "--page", page}, "invalidated all of  " + prefix + "s\n" +
			`note: no page shows a Guard with the Prefix "` + prefix + `s": is --prefix right?` + "\n"},
	} {
		if test.want == "invalidated  a\n" {
			keep(t, guard, "a")
		}
		r := ctl(t, at(shared), append([]string{"--prefix", test.prefix, "invalidate"}, test.args...)...)
		r.want(t, done)
		expect.Equal(t, strings.Join(test.args, " "), r.out, test.want)
	}
	ctl(t, at(shared), "--prefix", prefix+"s", "bypass", "0", "--page", page).want(t, done, "no page shows a Guard")
	ctl(t, at(shared), "--prefix", prefix, "invalidate", "a", "--page", "http://127.0.0.1:1").want(t, done, "not all instances were asked", "refused")
}
