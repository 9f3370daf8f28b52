package observe

import "reflect"

// looks has a func(any) V for each type that package admin can show as a V. The packages of the types fill it as they
// are initialized, and nothing changes afterwards: so what is shown needs no exported method that only package admin
// could call.
var looks = make(map[reflect.Type]any)

// Register makes values of T be seen as look sees them. It is for the initialization of the package that has T.
func Register[T, V any](look func(T) V) {
	looks[reflect.TypeFor[T]()] = func(shown any) V { return look(shown.(T)) }
}

// Look sees a value as a V; not known: values of its type are none.
func Look[V any](shown any) (seen V, known bool) {
	look, known := looks[reflect.TypeOf(shown)].(func(any) V)
	if known {
		seen = look(shown)
	}
	return seen, known
}
