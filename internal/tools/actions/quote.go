package actions

import "strings"

// unquoted are the characters that mean nothing to any shell, wherever they stand in a word but at its beginning.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+="

// commandLine writes arguments as a line for a shell: run there, it would pass exactly these.
func commandLine(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = quote(arg)
	}
	return strings.Join(words, " ")
}

// quote writes one word. Between single quotes a shell takes everything as it is, line breaks too; a single quote itself
// is put outside of them.
func quote(arg string) string {
	plain := strings.Trim(arg, unquoted) == "" && arg != "" && arg[0] != '='
	if plain {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
