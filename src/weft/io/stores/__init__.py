"""File stores: whole files below one root, on a local disk, an object store or HDFS, behind one small interface.

::

    /data/gl, file:/data/gl                           local disk           weft.io.stores.local
    s3://bucket/gl  (s3a:// is the same)              Amazon S3 and compatible stores
    gs://bucket/gl                                    Google Cloud Storage
    abfss://container@account.dfs.core.windows.net/   Azure                weft.io.stores.objects
    hdfs://host:8020/gl, webhdfs://host:9870/gl       HDFS by WebHDFS      weft.io.stores.hdfs

A store is pickled as its address and settings, without secrets, and each process opens its own connections.
"""

from weft.io.stores.base import FileInfo, FileStore
from weft.io.stores.data_files import find_stored_files
from weft.io.stores.hadoop import hadoop_address, hadoop_conf, hadoop_defaults
from weft.io.stores.opening import open_store

__all__ = [
    "FileInfo",
    "FileStore",
    "find_stored_files",
    "hadoop_address",
    "hadoop_conf",
    "hadoop_defaults",
    "open_store",
]
