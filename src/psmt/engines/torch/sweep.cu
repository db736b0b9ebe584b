// One block of the sweep over the atoms of a dictionary: each atom in turn becomes the best unit-norm atom, given the
// others. REAL is double or float, BLOCK the number of atoms. Compiled at first use by `cuda.py`.
//
// A thread holds one feature of all atoms of the block. Each atom takes the changes of the atoms before it into account.
// The threads synchronise only for its norm.

typedef REAL real;

#define WARP 32
#define BLOCK 32

// wishes (count, n_features): block-coordinate targets of the atoms, before any of them has changed and without their
// own part. shared (count, ..): sums of products of their codes, with `stride` numbers in a row.
// free (count): whether an atom may change.
extern "C" __global__ void __launch_bounds__(THREADS)
improve(real *atoms, const real *wishes, const real *shared, const real *free, int count, int n_features, int stride) {
    __shared__ real weights[BLOCK][BLOCK];
    __shared__ real sums[2][WARP];
    for (int i = threadIdx.x; i < count * count; i += blockDim.x)
        weights[i / count][i % count] = shared[(long long)(i / count) * stride + i % count];
    int feature = threadIdx.x;
    bool owns = feature < n_features;
    real moved[BLOCK];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < BLOCK; j++) {
        moved[j] = 0;
        if (j < count && free[j] > 0) {
            real before = owns ? atoms[(long long)j * n_features + feature] : (real)0;
            real wish = owns ? wishes[(long long)j * n_features + feature] + weights[j][j] * before : (real)0;
#pragma unroll
            for (int i = 0; i < j; i++) wish -= weights[j][i] * moved[i];
            real square = wish * wish;
            for (int offset = WARP / 2; offset > 0; offset /= 2)
                square += __shfl_xor_sync(0xffffffffu, square, offset);
            // Two rows, so that writers do not wait for the readers of the last one.
            if (threadIdx.x % WARP == 0) sums[j % 2][threadIdx.x / WARP] = square;
            __syncthreads();
            real norm = 0;
            for (int i = 0; i < blockDim.x / WARP; i++) norm += sums[j % 2][i];
            norm = sqrt(norm);
            if (norm > 0) {
                real after = wish / norm;
                moved[j] = owns ? after - before : (real)0;
                if (owns) atoms[(long long)j * n_features + feature] = after;
            }
        }
    }
}
