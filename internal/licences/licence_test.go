package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

const (
	mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\nof this software and associated documentation files"
	bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that"
	mpl = "Mozilla Public License Version 2.0\n 1.12. \"Secondary License\" means either the GNU General Public License, Version 2.0"
)

func TestLicencesAreKnownByTheirSentences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, names string
		wrong       bool
	}{
		{text: mit, names: "MIT"},
		{text: bsd + "\n---\n" + mit, names: "BSD MIT"},
		{text: mpl, names: "MPL-2.0"},
		{text: "                                 Apache License\n                           Version 2.0, January 2004", names: "Apache-2.0"},
		{text: "Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted", names: "ISC"},
		{text: "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", wrong: true},
		{text: mit + "\nOr the GNU Affero General Public License", names: "MIT", wrong: true},
		{text: mit + "\n\"Commons Clause\" License Condition v1.0", names: "MIT", wrong: true},
		{text: bsd + "\nAll advertising materials mentioning features", names: "BSD", wrong: true},
		{text: "All rights reserved.", wrong: true},
	} {
		names, err := namesOf(c.text)
		expect.Equal(t, "names of "+c.text, strings.Join(names, " "), c.names)
		expect.Equal(t, "wrong: "+c.text, err != nil, c.wrong)
	}
}

func TestAModuleWithoutALicenceIsRefusedAndSoIsAFolderWithAnother(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	copied := filepath.Join(root, "copied")
	m := module{folders: map[string]struct{}{root: {}, copied: {}}}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(copied, "license.go"), "package copied")
	_, err := m.licences()
	expect.ErrorIs(t, err, errNone)
	write(filepath.Join(root, "LICENSE"), mit)
	names, err := m.licences()
	expect.ErrorIs(t, err)
	expect.Equal(t, "licences", strings.Join(names, " "), "MIT")
	write(filepath.Join(copied, "COPYING.txt"), "GNU General Public License")
	if _, err = m.licences(); err == nil || !strings.Contains(err.Error(), "COPYING.txt") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
