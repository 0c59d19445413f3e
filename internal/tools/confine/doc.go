// Package confine keeps a program, and everything that it starts, to what it is given.
//
// # The life of a confined command
//
//  1. [New] works out, once, what commands may reach, and refuses what can't be kept apart: a workspace that holds one of
//     our own files.
//  2. [Sandbox.Launch] says how one command is started: our own binary once more, with a mark that this package's
//     initialization recognizes, before main and before most of the program exists. That process is the launcher.
//  3. The launcher reads the brief from its standard input, checks that it can signal us, enters a first Landlock domain
//     in which signals are scoped, and checks that now it can't.
//  4. In that domain it starts the keeper, a shell that waits for our end of the socket to close and then kills
//     everything that it may signal: the domain, so every process that the command will ever have started, whatever group
//     or session it has put itself into, and nothing else.
//  5. It enters a second domain, in which files and network are kept to the brief and from which the keeper can't be
//     signalled; gives up every capability; installs a filter of system calls; and becomes the command.
//
// Whatever fails on the way, the launcher says so and ends, and nothing has run. There is no lesser confinement: either
// all of this holds, or there is no command.
//
// # What holds it
//
// Landlock is an allow-list of paths that the kernel asks about at each opening, whatever the name: links, "..",
// /proc/self/root and open descriptors lead nowhere else. A rule covers a whole directory, so a directory that contains
// something of ours is replaced by its other entries (see expand). Landlock's domains also close every process outside:
// its memory, environment and descriptors under /proc, tracing, signals, abstract sockets. That needs version 6 of its
// interface (Linux 6.12); with less, a command could stop us, and leave something running.
//
// The filter of system calls closes what Landlock has no word for: sockets of every kind (with the network on, all but
// IPv4 and IPv6), io_uring, namespaces, mounts, handles of files, keys, tracing, other architectures' system calls, and
// system calls that are newer than this program's table.
//
// # What doesn't
//
// Landlock has no word for changing what a file is, as opposed to what is in it: a command can change the mode, the times,
// the group and the extended attributes of every file that our own user owns, our own files included. It can't read or
// write them afterwards either, but others may, or we may not: a journal that was closed in this way is not opened at the
// next start until somebody has put its mode right.
//
// Processor time, memory and disk are not limited. What every user of the machine may read below /usr, /etc and /opt can
// be read, and the names and arguments of all processes. A fault in the kernel is a way out.
package confine
