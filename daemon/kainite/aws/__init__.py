"""AWS: clients, credentials, the classification of failed calls, and the calls of DynamoDB.

Begin with :mod:`~kainite.aws.clients`, which makes every client of the daemon, and :mod:`~kainite.aws.failures`, the
one table of AWS's error codes. :mod:`~kainite.aws.dynamodb` has attribute values, conditions, pages and the making of a
table, for the lease table, KCL 3's coordinator items and the log. AWS imports base and settings.
"""
