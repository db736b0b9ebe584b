// Exact non-negative lasso: the active set of psmt/engines/numba/lasso.py, one thread block per problem.
//
//     minimise over a >= 0    1/2 ||x - D a||^2 + penalty'a,    optionally subject to  total'a <= activity
//
// x and D enter only by inner products: `gram` of the columns, `corr` of the columns with x, `square` of x.
// REAL is double or float. Compiled at first use by `cuda.py`.
//
// The support has n members. Their Gram matrix G is inverted by W (n, n) with W G W' = I. Adding a member adds a row, as
// in Gram-Schmidt. Removing a member is a reflection that moves the member into one row. Both are products that the whole
// block computes together, whereas a Cholesky factor would make it wait for each column. Reflections lose no digits if
// columns are almost dependent. Rounding errors of W are removed by the next step, which solves for what the last one
// left.
//
// All threads of a block take the same branches.

typedef REAL real;

#ifndef WARP
#define WARP 32
#endif
// Functions that are not inlined: compiling the copies would take ten seconds.
#define SHARED_CODE __device__ __noinline__
#define MEMBERS(i) for (int i = threadIdx.x; i < n; i += blockDim.x)

constexpr bool is_double = sizeof(real) == 8;
constexpr real HUGE_ = is_double ? (real)1e300 : (real)1e37;

// As in psmt/engines/numba/lasso.py, with larger values for float32. Fewer columns join at once, because each costs as
// much as a gradient here.
constexpr real DEPENDENT = is_double ? (real)1e-11 : (real)1e-5;
constexpr double ROUNDING = is_double ? 1e-14 : 1e-6;
constexpr real FREE = is_double ? (real)1e-300 : (real)1e-30;
constexpr int AT_ONCE = 4;
// The distance of a column from the support is refined if its square is below this.
constexpr real CLOSE = is_double ? (real)1e-4 : (real)1e-2;
// Steps without progress in the objective, after which only rounding is left.
constexpr int STALE = 32;
// Rows of W that a thread processes at a time, so that it waits for all of them together.
constexpr int AT_A_TIME = 8;
// Most multipliers of the bound that are tried.
constexpr int CUTS = 200;

struct Found {
    real value;
    int index;
};

__device__ real across(real value, int offset) { return __shfl_xor_sync(0xffffffffu, value, offset); }
__device__ double across_wide(double value, int offset) { return __shfl_xor_sync(0xffffffffu, value, offset); }
__device__ int across_int(int value, int offset) { return __shfl_xor_sync(0xffffffffu, value, offset); }

struct ActiveSet {
    // The problem
    const real *gram, *corr, *penalty, *total;
    int columns, limit;
    double square, price, tol;
    // The state: support, coefficients, and the remaining gradient there
    int n, *support;
    real *values, *missing, *rows;
    int stride;
    // Work arrays
    real *excess, *goal, *half, *cross, *extra, *partial, *far_rows;
    int near;
    double *sums;
    // Results of the last measure()
    double gap, violation, cost, objective;

    __device__ real price_of(int j) const { return price > 0.0 ? (real)(penalty[j] + price * total[j]) : penalty[j]; }

    // Sums and extremes over the block

    SHARED_CODE double sum(double value) {
        for (int offset = WARP / 2; offset > 0; offset /= 2) value += across_wide(value, offset);
        __syncthreads();
        if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = value;
        __syncthreads();
        double all = 0.0;
        for (int i = 0; i < blockDim.x / WARP; i++) all += sums[i];
        return all;
    }

    SHARED_CODE double largest(double value) {
        for (int offset = WARP / 2; offset > 0; offset /= 2) value = fmax(value, across_wide(value, offset));
        __syncthreads();
        if (threadIdx.x % WARP == 0) sums[threadIdx.x / WARP] = value;
        __syncthreads();
        double most = sums[0];
        for (int i = 1; i < blockDim.x / WARP; i++) most = fmax(most, sums[i]);
        return most;
    }

    // The smallest value and its index; the first of equal values.
    SHARED_CODE Found smallest(Found own) {
        for (int offset = WARP / 2; offset > 0; offset /= 2) {
            Found other = {across(own.value, offset), across_int(own.index, offset)};
            if (other.value < own.value || (other.value == own.value && other.index < own.index)) own = other;
        }
        __syncthreads();
        if (threadIdx.x % WARP == 0) {
            sums[threadIdx.x / WARP] = own.value;
            sums[32 + threadIdx.x / WARP] = own.index;
        }
        __syncthreads();
        own.value = (real)sums[0];
        own.index = (int)sums[32];
        for (int i = 1; i < blockDim.x / WARP; i++) {
            Found other = {(real)sums[i], (int)sums[32 + i]};
            if (other.value < own.value || (other.value == own.value && other.index < own.index)) own = other;
        }
        return own;
    }

    // Products with W

    // out = W v
    SHARED_CODE void times(const real *v, real *out) {
        int warps = blockDim.x / WARP;
        for (int first = threadIdx.x / WARP; first < n; first += AT_A_TIME * warps) {
            real totals[AT_A_TIME];
#pragma unroll
            for (int k = 0; k < AT_A_TIME; k++) totals[k] = 0;
            for (int j = threadIdx.x % WARP; j < n; j += WARP) {
#pragma unroll
                for (int k = 0; k < AT_A_TIME; k++) {
                    int i = first + k * warps;
                    if (i < n) totals[k] += rows[(long long)i * stride + j] * v[j];
                }
            }
#pragma unroll
            for (int k = 0; k < AT_A_TIME; k++) {
                int i = first + k * warps;
                if (i >= n) break;
                for (int offset = WARP / 2; offset > 0; offset /= 2) totals[k] += across(totals[k], offset);
                if (threadIdx.x % WARP == 0) out[i] = totals[k];
            }
        }
        __syncthreads();
    }

    // Number of threads that work on the columns of W; groups of this size share its rows.
    __device__ int width() const {
        int whole = (n + WARP - 1) / WARP * WARP;
        return whole < blockDim.x ? whole : blockDim.x;
    }

    // out = W' v
    SHARED_CODE void transposed(const real *v, real *out) {
        int wide = width(), groups = wide > 0 ? blockDim.x / wide : 0;
        int group = wide > 0 ? threadIdx.x / wide : 0;
        for (int first = 0; first < n; first += wide) {
            int j = first + threadIdx.x % wide;
            real total_ = 0;
            if (group < groups && j < n) {
#pragma unroll 8
                for (int i = group; i < n; i += groups) total_ += rows[(long long)i * stride + j] * v[i];
            }
            partial[threadIdx.x] = total_;
            __syncthreads();
            if (threadIdx.x < wide && j < n) {
                real all = 0;
                for (int g = 0; g < groups; g++) all += partial[g * wide + threadIdx.x];
                out[j] = all;
            }
            __syncthreads();
        }
    }

    // goal = G^-1 v
    SHARED_CODE void solve_for(const real *v) {
        times(v, half);
        transposed(half, goal);
    }

    // Adding and removing members

    // Write W times the products of column j with the support into `half`, and G^-1 times them into `goal`.
    // Returns the squared distance of the column from the span of the support.
    SHARED_CODE real distance(int j) {
        const real *row = gram + (long long)j * columns;
        MEMBERS(i) cross[i] = row[support[i]];
        __syncthreads();
        times(cross, half);
        double own = 0.0;
        MEMBERS(i) own += (double)half[i] * half[i];
        real whole = row[j];
        real left = (real)(whole - sum(own));
        transposed(half, goal);
        if (left > CLOSE) return left;
        // Refine: at the true minimum, the distance is as exact as the products are.
        for (int again = 0; again < 2; again++) {
            residual_of_goal();
            own = 0.0;
            MEMBERS(i) own += (double)goal[i] * ((double)cross[i] + half[i]);
            left = (real)(whole - sum(own));
            if (again == 1) break;
            times(half, extra);
            transposed(extra, half);
            MEMBERS(i) goal[i] += half[i];
            __syncthreads();
        }
        return left;
    }

    // half = cross - G goal
    __device__ void residual_of_goal() {
        for (int i = threadIdx.x / WARP; i < n; i += blockDim.x / WARP) {
            const real *row = gram + (long long)support[i] * columns;
            real total_ = 0;
            for (int k = threadIdx.x % WARP; k < n; k += WARP) total_ += row[support[k]] * goal[k];
            for (int offset = WARP / 2; offset > 0; offset /= 2) total_ += across(total_, offset);
            if (threadIdx.x % WARP == 0) half[i] = cross[i] - total_;
        }
        __syncthreads();
    }

    // Add the column whose `distance` was just computed as `left`.
    SHARED_CODE void append(int j, real left, real value, real gradient) {
        if (n == near && stride == near) move_away();
        real scale = (real)1 / sqrt(left);
        MEMBERS(i) {
            rows[(long long)n * stride + i] = -goal[i] * scale;
            rows[(long long)i * stride + n] = 0;
        }
        if (threadIdx.x == 0) {
            rows[(long long)n * stride + n] = scale;
            support[n] = j;
            values[n] = value;
            missing[n] = gradient;
        }
        n++;
        __syncthreads();
    }

    // Move W from shared memory, which is full, to device memory.
    SHARED_CODE void move_away() {
        for (int i = threadIdx.x; i < n * n; i += blockDim.x)
            far_rows[(long long)(i / n) * limit + i % n] = rows[i / n * stride + i % n];
        __syncthreads();
        rows = far_rows;
        stride = limit;
    }

    // Remove member c; the last member takes its place, also in `goal`.
    SHARED_CODE void drop(int c) {
        int last = n - 1;
        double own = 0.0;
        MEMBERS(i) {
            real entry = rows[(long long)i * stride + c];
            half[i] = entry;
            own += (double)entry * entry;
        }
        real size = (real)sqrt(sum(own));
        real pivot = half[last];
        __syncthreads();
        if (threadIdx.x == 0) half[last] = pivot > 0 ? pivot + size : pivot - size;
        __syncthreads();
        real scale = (real)1 / (size * (size + fabs(pivot)));
        transposed(half, cross);
        int wide = width(), groups = blockDim.x / wide, group = threadIdx.x / wide;
        for (int j = threadIdx.x % wide; j < n; j += wide) {
            if (group >= groups || j == c) continue;
            real factor = scale * cross[j];
            int to = j == last ? c : j;
            for (int first = group; first < last; first += AT_A_TIME * groups) {
                real entries[AT_A_TIME];
#pragma unroll
                for (int k = 0; k < AT_A_TIME; k++) {
                    int i = first + k * groups;
                    if (i < last) entries[k] = rows[(long long)i * stride + j] - half[i] * factor;
                }
#pragma unroll
                for (int k = 0; k < AT_A_TIME; k++) {
                    int i = first + k * groups;
                    if (i < last) rows[(long long)i * stride + to] = entries[k];
                }
            }
        }
        if (threadIdx.x == 0) {
            support[c] = support[last];
            values[c] = values[last];
            missing[c] = missing[last];
            goal[c] = goal[last];
        }
        n--;
        __syncthreads();
    }

    // The steps

    // Compute the gradient less the penalties at all columns, the duality gap and the objective.
    SHARED_CODE void measure() {
        double violation_ = 0.0, relative = 0.0;
        for (int j = threadIdx.x; j < columns; j += blockDim.x) {
            real own = price_of(j), left = corr[j] - own;
            const real *column = gram + j;
#pragma unroll 8
            for (int i = 0; i < n; i++) left -= values[i] * column[(long long)support[i] * columns];
            excess[j] = left;
            if (left > 0) {
                violation_ = fmax(violation_, (double)left);
                relative = fmax(relative, (double)left / (double)(own > FREE ? own : FREE));
            }
        }
        __syncthreads();
        double paid = 0.0, fitted = 0.0, slack = 0.0;
        MEMBERS(i) {
            int j = support[i];
            missing[i] = excess[j];
            paid += (double)values[i] * price_of(j);
            fitted += (double)values[i] * corr[j];
            slack += (double)values[i] * missing[i];
        }
        violation = largest(violation_);
        relative = largest(relative);
        cost = sum(paid);
        fitted = sum(fitted);
        slack = sum(slack);
        // The residual is dual feasible once it is scaled so that no correlation exceeds its penalty.
        double scale = 1.0 / (1.0 + relative);
        double rest = fmax(square - fitted - slack - cost, 0.0);
        objective = 0.5 * rest + cost;
        gap = objective - scale * (square - fitted) + 0.5 * scale * scale * rest;
    }

    // Find the optimum on the present support, without the members that would be negative there.
    __device__ void start() {
        for (;;) {
            MEMBERS(i) missing[i] = corr[support[i]] - price_of(support[i]);
            __syncthreads();
            solve_for(missing);
            int before = n;
            for (int i = n - 1; i >= 0; i--)
                if (!(goal[i] > 0)) drop(i);
            if (n == before) break;
        }
        MEMBERS(i) values[i] = goal[i];
        __syncthreads();
    }

    // Add the columns that violate optimality most; returns their number.
    __device__ int let_in() {
        MEMBERS(i) excess[support[i]] = -HUGE_;
        __syncthreads();
        real least = (real)fmax(0.5 * violation, ROUNDING * sqrt(square));
        int added = 0;
        for (int tried = 0; tried < AT_ONCE; tried++) {
            Found own = {HUGE_, columns};
            for (int j = threadIdx.x; j < columns; j += blockDim.x)
                if (-excess[j] < own.value) own = {-excess[j], j};
            Found best = smallest(own);
            if (!(-best.value > least)) break;
            int j = best.index;
            if (threadIdx.x == 0) excess[j] = -HUGE_;
            real left = distance(j);
            if (n < limit && left > DEPENDENT) {
                append(j, left, 0, -best.value);
                added++;
            } else if (added == 0 && exchange(j, -best.value)) {
                added++;
            }
        }
        return added;
    }

    // Column j lies in the span of the support: it replaces the member that it drives to zero first. The fit stays the
    // same, the cost falls. Returns false if there is no such member.
    __device__ bool exchange(int j, real gradient) {
        Found own = {HUGE_, n};
        MEMBERS(i) if (goal[i] > 0 && values[i] / goal[i] < own.value) own = {values[i] / goal[i], i};
        Found out = smallest(own);
        if (out.index >= n) return false;
        MEMBERS(i) {
            real value = values[i] - out.value * goal[i];
            values[i] = value > 0 ? value : (real)0;
        }
        __syncthreads();
        drop(out.index);
        real left = distance(j);
        if (left > DEPENDENT) append(j, left, out.value, gradient);
        return true;
    }

    // Walk to the optimum of the support; members that reach zero on the way leave.
    __device__ void walk() {
        while (n > 0) {
            solve_for(missing);
            Found own = {1, n};
            MEMBERS(i) if (!(values[i] + goal[i] > 0)) {
                real step = goal[i] < 0 ? values[i] / -goal[i] : (real)0;
                if (step < own.value || own.index == n) own = {step, i};
            }
            Found first = smallest(own);
            real step = first.index < n ? first.value : (real)1;
            MEMBERS(i) {
                real value = values[i] + step * goal[i];
                values[i] = value > 0 ? value : (real)0;
                missing[i] -= step * missing[i];
            }
            __syncthreads();
            if (first.index >= n) break;
            drop(first.index);
        }
    }

    // Solve the problem at the present multiplier, from coefficients that are optimal on their support.
    SHARED_CODE void solve() {
        double lowest = HUGE_, rounding = ROUNDING * sqrt(square);
        int stale = 0, refined = 0;
        for (int step = 0; step < 20 * (columns + limit); step++) {
            measure();
            if (gap <= tol * 0.5 * square || violation <= rounding) break;
            stale = objective < lowest - (is_double ? 1e-16 : 1e-8) * square ? 0 : stale + 1;
            lowest = fmin(lowest, objective);
            if (stale > STALE) break;
            // If no column is added, only rounding is left: that of W is removed by another walk.
            refined = let_in() ? 0 : refined + 1;
            if (refined > 2) break;
            walk();
        }
        // Refine the last digits.
        solve_for(missing);
        double negative = 0.0;
        MEMBERS(i) if (!(values[i] + goal[i] > 0)) negative = 1.0;
        if (largest(negative) == 0.0) {
            MEMBERS(i) values[i] += goal[i];
            __syncthreads();
        }
    }

    __device__ double spent() {
        double own = 0.0;
        MEMBERS(i) own += (double)values[i] * total[support[i]];
        return sum(own);
    }
};

// A stored solution, in device memory.
struct Kept {
    int n, *support;
    real *values;
    double spent, cost;

    __device__ void keep(ActiveSet &set, double spent_, double cost_) {
        __syncthreads();
        n = set.n;
        spent = spent_;
        cost = cost_;
        MEMBERS(i) {
            support[i] = set.support[i];
            values[i] = set.values[i];
        }
        __syncthreads();
    }
};

// Squared distance of D a from D b, from the differences of coefficients. `set.excess` is overwritten.
__device__ double squared_distance(ActiveSet &set, Kept &a, Kept &b, int *index, real *weight) {
    int n = a.n + b.n;
    for (int i = threadIdx.x; i < b.n; i += blockDim.x) set.excess[b.support[i]] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) set.excess[a.support[i]] = a.values[i];
    __syncthreads();
    for (int i = threadIdx.x; i < b.n; i += blockDim.x) set.excess[b.support[i]] -= b.values[i];
    __syncthreads();
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) {
        index[i] = a.support[i];
        weight[i] = set.excess[a.support[i]];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < a.n; i += blockDim.x) set.excess[a.support[i]] = 0;  // so that no column counts twice
    __syncthreads();
    for (int i = threadIdx.x; i < b.n; i += blockDim.x) {
        index[a.n + i] = b.support[i];
        weight[a.n + i] = set.excess[b.support[i]];
    }
    __syncthreads();
    double own = 0.0;
    for (int i = threadIdx.x / WARP; i < n; i += blockDim.x / WARP) {
        const real *row = set.gram + (long long)index[i] * set.columns;
        double total = 0.0;
        for (int k = threadIdx.x % WARP; k < n; k += WARP) total += (double)row[index[k]] * weight[k];
        own += total * weight[i];
    }
    return fmax(set.sum(own), 0.0);
}

// Write the indices of at most `room` positive entries of `coef`, in order; returns their number.
__device__ int positive(const real *coef, int columns, int room, int *found, real *partial) {
    int each = (columns + blockDim.x - 1) / blockDim.x;
    int first = threadIdx.x * each, last = first + each < columns ? first + each : columns;
    int own = 0;
    for (int j = first; j < last; j++) own += coef[j] > 0;
    int *counts = (int *)partial;
    int upto = own;
    for (int offset = 1; offset < blockDim.x; offset *= 2) {
        counts[threadIdx.x] = upto;
        __syncthreads();
        int before = threadIdx.x >= offset ? counts[threadIdx.x - offset] : 0;
        __syncthreads();
        upto += before;
    }
    counts[threadIdx.x] = upto;
    __syncthreads();
    int at = upto - own;
    for (int j = first; j < last; j++)
        if (coef[j] > 0 && at < room) found[at++] = j;
    int all = counts[blockDim.x - 1];
    __syncthreads();
    return all < room ? all : room;
}

// Numbers in device memory for each block; lasso.py computes the same.
__device__ long long scratch_size(int columns, int limit, int near) {
    return 15ll * limit + columns + (limit > near ? (long long)limit * limit : 0);
}

// Compute coef (n_problems, columns) and gap (n_problems). A block that is free takes the next problem; `counter` starts
// at zero.
//
// gram_shared: whether all problems have one Gram matrix. price_step, total_step: distance between the penalties of one
// problem and the next (0 if they are shared). With `warm`, coef holds solutions whose supports are tried first. If
// `bounded`, total'a <= activity. `near` rows of W fit into shared memory and, if `roomy`, the vectors too.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
active_set(const real *gram, const real *corr, const real *square, const real *penalty,
                                      const real *total, const real *activity, real *coef, real *gap, real *scratch,
                                      int *counter, int n_problems, int columns, int limit, int gram_shared,
                                      int price_step, int total_step, int warm, int bounded, int near, int roomy,
                                      double tol) {
    extern __shared__ double shared[];
    __shared__ int next;
    real *close = (real *)(shared + 64), *far = scratch + blockIdx.x * scratch_size(columns, limit, near);
    Kept lavish, frugal;
    lavish.values = far;
    frugal.values = far + limit;
    real *weight = far + 2 * limit;
    lavish.support = (int *)(far + 4 * limit);
    frugal.support = (int *)(far + 5 * limit);
    int *index = (int *)(far + 6 * limit);

    ActiveSet set;
    set.sums = shared;
    set.partial = close;
    close += blockDim.x;
    real *vectors = roomy ? close : far + 8 * limit;
    set.values = vectors;
    set.missing = vectors + limit;
    set.goal = vectors + 2 * limit;
    set.half = vectors + 3 * limit;
    set.cross = vectors + 4 * limit;
    set.extra = vectors + 5 * limit;
    set.support = (int *)(vectors + 6 * limit);
    set.excess = vectors + 7 * limit;
    real *near_rows = roomy ? set.excess + columns : close;
    set.far_rows = far + 15ll * limit + columns;
    set.near = near;
    set.columns = columns;
    set.limit = limit;
    set.tol = tol;

    for (int problem = blockIdx.x; problem < n_problems;) {
        real *own = coef + (long long)problem * columns;
        set.gram = gram + (gram_shared ? 0 : (long long)problem * columns * columns);
        set.corr = corr + (long long)problem * columns;
        set.penalty = penalty + (long long)problem * price_step;
        set.total = total + (long long)problem * total_step;
        set.square = square[problem];
        set.price = 0.0;
        set.n = 0;
        set.rows = near_rows;
        set.stride = near;
        if (warm) {
            int *given = (int *)set.excess;  // which is not in use yet
            int n_given = positive(own, columns, limit, given, set.partial);
            for (int i = 0; i < n_given; i++) {
                real left = set.distance(given[i]);
                if (left > DEPENDENT) set.append(given[i], left, 0, 0);
            }
        }
        set.start();
        set.solve();
        double bound = bounded ? (double)activity[problem] : HUGE_, spent = bounded ? set.spent() : 0.0;
        double certain = set.gap, share = 1.0;
        if (spent > bound) {
            // The bound is active: `bounded_optimum` in psmt/engines/contract.py explains this search.
            set.measure();
            lavish.keep(set, spent, set.objective);
            frugal.n = 0;
            frugal.spent = 0.0;
            frugal.cost = 0.5 * set.square;
            double lower = lavish.cost;
            for (int cut = 0; cut < CUTS; cut++) {
                share = (bound - frugal.spent) / (lavish.spent - frugal.spent);
                double mixed = (1.0 - share) * frugal.cost + share * lavish.cost -
                               0.5 * share * (1.0 - share) * squared_distance(set, lavish, frugal, index, weight);
                certain = mixed - lower;
                if (certain <= tol * 0.5 * set.square) break;
                set.price = (frugal.cost - lavish.cost) / (lavish.spent - frugal.spent);
                set.start();
                set.solve();
                set.measure();
                spent = set.spent();
                double cost = set.objective - set.price * spent;
                lower = fmax(lower, cost + set.price * (spent - bound));
                if (spent > bound) lavish.keep(set, spent, cost);
                else frugal.keep(set, spent, cost);
            }
        }
        for (int j = threadIdx.x; j < columns; j += blockDim.x) own[j] = 0;
        __syncthreads();
        if (spent > bound || share < 1.0) {
            for (int i = threadIdx.x; i < frugal.n; i += blockDim.x)
                own[frugal.support[i]] = (real)((1.0 - share) * frugal.values[i]);
            __syncthreads();
            for (int i = threadIdx.x; i < lavish.n; i += blockDim.x)
                own[lavish.support[i]] += (real)(share * lavish.values[i]);
        } else {
            for (int i = threadIdx.x; i < set.n; i += blockDim.x) own[set.support[i]] = set.values[i];
        }
        if (threadIdx.x == 0) {
            gap[problem] = (real)certain;
            next = n_problems > gridDim.x ? gridDim.x + atomicAdd(counter, 1) : n_problems;
        }
        __syncthreads();
        problem = next;
        __syncthreads();
    }
}
