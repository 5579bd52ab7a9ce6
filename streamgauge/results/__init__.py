"""Lists and shows what was measured: records in, tables and pages out."""
