// Many small symmetric systems of equations, one block of threads for each. REAL is double or float. Compiled at first
// use by `cuda.py`.
//
// The matrix lies in shared memory, one row for each thread. Rows are padded by one number, so that threads that read a
// column do not wait for each other.

typedef REAL real;

extern __shared__ char memory[];

// Reads the lower halves of matrices (count, n, n); the solutions replace the right-hand sides (count, n).
extern "C" __global__ void __launch_bounds__(THREADS) solve(const real *matrices, real *sides, int n) {
    int stride = n + 1, i = threadIdx.x;
    real *matrix = (real *)memory, *side = matrix + n * stride;
    const real *given = matrices + (long long)blockIdx.x * n * n;
    for (int k = i; k < n * n; k += blockDim.x) matrix[k / n * stride + k % n] = given[k];
    if (i < n) side[i] = sides[(long long)blockIdx.x * n + i];
    __syncthreads();
    real *row = matrix + i * stride;
    // The Cholesky factor replaces the matrix, and the forward substitution is done along the way.
    for (int k = 0; k < n; k++) {
        real square = matrix[k * stride + k];
        // A direction without energy is left out.
        real inverse = square > (real)1e-36 ? 1 / sqrt(square) : (real)0;
        real own = i > k && i < n ? row[k] * inverse : (real)0, solved = side[k] * inverse;
        __syncthreads();
        if (i > k && i < n) {
            row[k] = own;
            side[i] -= own * solved;
        }
        if (i == k) {
            row[k] = inverse;
            side[k] = solved;
        }
        __syncthreads();
        if (i > k && i < n)
            for (int j = k + 1; j <= i; j++) row[j] -= own * matrix[j * stride + k];
        __syncthreads();
    }
    for (int k = n - 1; k >= 0; k--) {
        real solved = side[k] * matrix[k * stride + k];
        __syncthreads();
        if (i < k) side[i] -= matrix[k * stride + i] * solved;
        if (i == k) side[k] = solved;
        __syncthreads();
    }
    if (i < n) sides[(long long)blockIdx.x * n + i] = side[i];
}
