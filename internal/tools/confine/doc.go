// Package confine keeps a program to what it is given.
package confine
