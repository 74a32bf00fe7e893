from ..privacy.mechanisms._oracle cimport SolverOracle
from ._iterate cimport Iterate


cdef class OracleIterate(Iterate):
    cdef SolverOracle oracle
