// Interpolation between the pixels of a frame, and smoothing of maps: one thread for each pixel, instead of dozens of
// torch operations. REAL is double or float. Compiled at first use by `cuda.py`.

typedef REAL real;

__device__ int inside(int index, int length) { return min(max(index, 0), length - 1); }

// Weights of the four pixels around a position that lies a fraction t after the second of them.
__device__ void catmull_rom(real t, real *weights) {
    weights[0] = (real)0.5 * (t * (t * (2 - t) - 1));
    weights[1] = (real)0.5 * (t * t * (3 * t - 5) + 2);
    weights[2] = (real)0.5 * (t * (t * (4 - 3 * t) + 1));
    weights[3] = (real)0.5 * (t * t * (t - 1));
}

// result (height, width): the frame read at (y, x) + flow[:, y, x].
extern "C" __global__ void __launch_bounds__(THREADS)
    moved(const real *frame, const real *flow, real *result, int height, int width) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, size = height * width;
    if (k >= size) return;
    real row = min(max(k / width + flow[k], (real)0), (real)(height - 1));
    real column = min(max(k % width + flow[size + k], (real)0), (real)(width - 1));
    int i = (int)row, j = (int)column;
    real down[4], right[4], total = 0;
    catmull_rom(row - i, down);
    catmull_rom(column - j, right);
    for (int a = 0; a < 4; a++) {
        const real *seen = frame + (long long)inside(i + a - 1, height) * width;
        real sum = 0;
        for (int b = 0; b < 4; b++) sum += right[b] * seen[inside(j + b - 1, width)];
        total += down[a] * sum;
    }
    result[k] = total;
}

// means (n, height, width) over squares of 2 radius + 1 pixels around each pixel; edges are repeated.
extern "C" __global__ void __launch_bounds__(THREADS)
    boxed(const real *values, real *means, int n, int height, int width, int radius) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, size = height * width;
    if (k >= n * size) return;
    const real *map = values + (long long)(k / size) * size;
    int y = k % size / width, x = k % width;
    real total = 0;
    for (int down = -radius; down <= radius; down++) {
        const real *row = map + (long long)inside(y + down, height) * width;
        for (int right = -radius; right <= radius; right++) total += row[inside(x + right, width)];
    }
    means[k] = total / ((2 * radius + 1) * (2 * radius + 1));
}
