"""What Spark reads of a journal, beside what it reads of the same rows in Parquet."""
