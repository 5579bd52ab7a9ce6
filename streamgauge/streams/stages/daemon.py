"""PySpark's daemon, whose copies are Spark's Python workers; started as ours, it imports the installed PySpark."""

from pyspark.daemon import manager

if __name__ == "__main__":
    manager()
