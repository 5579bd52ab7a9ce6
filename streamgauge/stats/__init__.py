"""Statistics: numbers in, frozen records out. Nothing here knows a file, an engine or a record of a stage."""
