from ..privacy.mechanisms._oracle cimport Oracle
from ._iterate cimport Iterate


cdef class OracleIterate(Iterate):
    cdef Oracle oracle
