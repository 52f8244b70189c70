// A library that does nothing: what it costs a process to load any library at all.
