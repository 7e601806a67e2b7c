import retrace  # noqa: F401 - first of all, as it says what this process ends with
