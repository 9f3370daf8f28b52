package observe

import "testing"

type (
	house  struct{ windows int }
	garden struct{}
	front  struct{ windows int }
	back   struct{}
)

func TestAValueIsSeenAsItsPackageSaidAndAsNothingElse(t *testing.T) {
	Register(func(h *house) front { return front{h.windows} })
	if seen, known := Look[front](&house{windows: 3}); !known || seen.windows != 3 {
		t.Errorf("a registered type: %v, %v", seen, known)
	}
	if _, known := Look[back](&house{}); known {
		t.Error("a registered type is seen as what it was not registered as")
	}
	for _, stranger := range []any{&garden{}, house{}, nil} {
		if _, known := Look[front](stranger); known {
			t.Errorf("%T is known", stranger)
		}
	}
}
