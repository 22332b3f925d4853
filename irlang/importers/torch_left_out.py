"""PyTorch's operators that are left out, and why."""

from __future__ import annotations

_SIZE = "the size of its result depends on the values of elements"
_COMPLEX = "irlang has no complex numbers"
_PIVOTS = "elimination chooses its pivots by the values of elements"
_BASIS = "its vectors are found by iteration, and are not unique"
_LAW = "no definition says yet what holds of what is drawn"
_FUNCTION = "there is no such scalar function yet"
_SPARSE = "sparse tensors are not supported"
_BITS = "it is about the bits of numbers, not about their values"

_GROUPS: dict[str, tuple[str, ...]] = {
    _SIZE: (
        *("masked_select", "_unique2", "unique_consecutive", "unique_dim"),
        *("bincount", "histogramdd", "_histogramdd_from_bin_cts"),
    ),
    _COMPLEX: (
        *("fft_fft", "fft_fft2", "fft_fftn", "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_rfft"),
        *("fft_rfft2", "fft_rfftn", "fft_ihfft", "fft_ihfft2", "fft_ihfftn", "stft", "istft"),
        *("complex", "polar", "view_as_complex", "chalf", "linalg_eig", "linalg_eigvals"),
    ),
    _PIVOTS: (
        *("linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_lu_solve", "lu_solve"),
        *("_lu_with_info", "lu_unpack", "linalg_ldl_factor", "linalg_ldl_factor_ex"),
        *("linalg_ldl_solve", "linalg_inv_ex", "linalg_solve_ex", "linalg_cholesky_ex"),
    ),
    _BASIS: (
        *("linalg_svd", "svd", "linalg_svdvals", "linalg_qr", "qr", "geqrf", "ormqr"),
        *("linalg_householder_product", "linalg_eigh", "linalg_eigvalsh", "linalg_pinv"),
        *("pinverse", "linalg_cond", "linalg_matrix_rank", "linalg_lstsq"),
    ),
    _LAW: (
        *("geometric", "cauchy", "exponential", "log_normal", "multinomial", "poisson"),
        *("binomial", "randint", "randint_like", "randperm"),
    ),
    _FUNCTION: ("special_airy_ai",),
    _SPARSE: ("to_sparse", "to_sparse_csr", "sparse_mask"),
    _BITS: ("frexp", "nextafter", "hash_tensor"),
}

LEFT_OUT: dict[str, str] = {name: reason for reason, names in _GROUPS.items() for name in names}


def table() -> str:
    """The table of the documentation."""
    rows = [f"| {', '.join(names)} | {reason} |" for reason, names in _GROUPS.items()]
    return "\n".join(["| operator | why it is left out |", "| --- | --- |", *rows])
