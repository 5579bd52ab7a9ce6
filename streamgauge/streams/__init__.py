"""Makes a proven stream from a file: texts, disorder, exact generation, and the stages that do it."""
