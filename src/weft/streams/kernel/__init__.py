"""The join of two streams over Arrow: pure, vectorised, shipped to workers by value.

It imports the standard library, numpy, pyarrow and itself, and nothing else of Weft, so that a
worker needs no Weft.  Only `weft.streams.kernel.spec` may be imported without numpy.
"""
