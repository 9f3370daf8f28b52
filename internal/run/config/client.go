package config

import (
	"errors"
	"reflect"
)

// CheckClient refuses a client that is nil.
func CheckClient(rdb any) error {
	if v := reflect.ValueOf(rdb); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("rdb is nil")
	}
	return nil
}
