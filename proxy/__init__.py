"""The shell: wire protocol, sessions, shadow database, sources, pipeline, REST, console."""
