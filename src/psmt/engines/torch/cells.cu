// Many small symmetric systems of equations, a block of threads for each. REAL is double or float. Compiled at first use
// by `nvrtc.py`.
//
// The matrix lies in shared memory, a row for each thread, with one number more in a row than it needs: so threads that
// read a column do not wait for each other.

typedef REAL real;

extern __shared__ char memory[];

// matrices (count, n, n), of which the lower halves are read; sides (count, n), which the solutions replace.
extern "C" __global__ void __launch_bounds__(THREADS) solve(const real *matrices, real *sides, int n) {
    int stride = n + 1, i = threadIdx.x;
    real *matrix = (real *)memory, *side = matrix + n * stride;
    const real *given = matrices + (long long)blockIdx.x * n * n;
    for (int k = i; k < n * n; k += blockDim.x) matrix[k / n * stride + k % n] = given[k];
    if (i < n) side[i] = sides[(long long)blockIdx.x * n + i];
    __syncthreads();
    real *row = matrix + i * stride;
    // Cholesky's factor takes the place of the matrix, and the side is solved with it on the way.
    for (int k = 0; k < n; k++) {
        real square = matrix[k * stride + k];
        // A direction of no energy is left out.
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
