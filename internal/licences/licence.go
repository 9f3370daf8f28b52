package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var errNone = errors.New("it has no licence")

// licences reads how the module may be used from its files.
func (m module) licences() (names []string, err error) {
	for dir := range m.folders {
		entries, failed := os.ReadDir(dir)
		if failed != nil {
			return names, failed
		}
		for _, entry := range entries {
			if entry.IsDir() || !isLicence(entry.Name()) {
				continue
			}
			text, failed := os.ReadFile(filepath.Join(dir, entry.Name()))
			if failed != nil {
				return names, failed
			}
			in, wrong := namesOf(string(text))
			names = append(names, in...)
			if wrong != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", filepath.Join(dir, entry.Name()), wrong))
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			err = errors.Join(err, fmt.Errorf("%s is not allowed", name))
		}
	}
	if len(names) == 0 && err == nil {
		err = errNone
	}
	return names, err
}

func isLicence(file string) bool {
	name := strings.ToLower(file)
	if strings.HasSuffix(name, ".go") {
		return false
	}
	return slices.ContainsFunc([]string{"license", "licence", "copying", "unlicense"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

const mozilla = "MPL-2.0"

// known is a sentence of each licence, in small letters, without line breaks.
var known = []struct{ name, sentence string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{mozilla, "mozilla public license version 2.0"},
	{mozilla, "mozilla public license, version 2.0"},
}

var allowed = []string{"Apache-2.0", "BSD", "ISC", "MIT", mozilla}

// refused is what turns one of these into another licence, or stands beside it. MPL 2.0 itself mentions the licences of GNU.
var refused = []string{"commons clause", "all advertising materials mentioning", "server side public license", "business source license", "elastic license", "creative commons"}

// namesOf returns what a text is. err: it is, or may be, another licence.
func namesOf(text string) (names []string, err error) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, licence := range known {
		if strings.Contains(text, licence.sentence) {
			names = append(names, licence.name)
		}
	}
	words := refused
	if !slices.Contains(names, mozilla) {
		words = append([]string{"gnu general public", "gnu lesser general public", "gnu library general public", "gnu affero general public"}, words...)
	}
	for _, word := range words {
		if strings.Contains(text, word) {
			return names, fmt.Errorf("it mentions %q", word)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("it is no licence that is known here")
	}
	return names, nil
}
