// Backward induction on a CUDA device.  Numbers in, arrays filled; see cuda.py for who calls.
//
// A row of states (layout.py) belongs to one warp, which walks along the acceptances of the long
// group, so that all it reads and writes is contiguous.  Each row remembers a hull [lo, hi):
// outside it every cost to go is infinite, nothing is computed and nothing is read.  Layers
// alternate between two buffers.  One launch goes through many layers: the blocks are all resident
// and meet at a barrier after each.
//
// LABELLED  0 or 1: the family
// LEVELS    1: one cost level; 2: a few, gone through; 3: many, searched
// RECORD    0 or 1: whether decisions are written
// CUT, CODE the types of cuts and codes

#define WARP 32
#define ALL 0xffffffffu
#define FINITE 1e290
#define EMPTY 0xffffu  // as a hull: lo beyond every row, hi = 0
#define UNROLL 2
#define MOST_PRICES 261  // of one step: four sides of 32 weights, 32 costs and a total; the stay
#define CUTS 6

typedef unsigned Hull;  // lo, and hi 16 bits higher
typedef long long Long;

__device__ __forceinline__ double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
__device__ __forceinline__ double lesser(double x, double y) { return x < y ? x : y; }
__device__ __forceinline__ int low(Hull h) { return h & 0xffff; }
__device__ __forceinline__ int high(Hull h) { return h >> 16; }
__device__ __forceinline__ bool inside(int k, Hull h) { return k >= low(h) && k < high(h); }

// Where rows are ------------------------------------------------------------------------------

__device__ __forceinline__ int rows_of_pairs(int seen) { return (seen + 2) * (seen + 2) / 4; }

__device__ __forceinline__ int rows_of_smaller_pairs(int seen) {
    return (int)((Long)(seen + 1) * (seen + 3) * (2 * seen + 1) / 24);
}

// Rows after t decisions.
__device__ __forceinline__ int rows_of_layer(int t) {
    return LABELLED ? rows_of_smaller_pairs(t + 1) : rows_of_pairs(t);
}

struct Pair {
    int n_a, n_b;

    __device__ bool turned() const { return n_a > n_b; }
    __device__ int cells() const { return max(n_a, n_b) + 1; }
    // Rows begin at multiples of 32 bytes.
    __device__ int step() const { return (cells() + 3) & ~3; }

    __device__ int first_row() const {
        int seen = n_a + n_b, first = LABELLED ? rows_of_smaller_pairs(seen) : 0;
        if (!turned()) return first + n_a * (n_a + 1) / 2;
        return first + rows_of_pairs(seen) - (n_b + 1) * (n_b + 2) / 2;
    }

    __device__ Long start(const Long* starts) const {
        int seen = n_a + n_b;
        return starts[LABELLED ? seen * (seen + 1) / 2 + n_a : n_a];
    }
};

// The n with n (n + 1) / 2 <= i < (n + 1) (n + 2) / 2.
__device__ __forceinline__ int triangular_root(int i) {
    int n = (int)((sqrtf(8.0f * i + 1.0f) - 1.0f) * 0.5f);
    while (n * (n + 1) / 2 > i) --n;
    while ((n + 1) * (n + 2) / 2 <= i) ++n;
    return n;
}

// The pair of a row of those with so many people seen; row becomes that of its short group.
__device__ __forceinline__ Pair pair_of(int seen, int& row) {
    int half = seen / 2 + 1;
    if (row < half * (half + 1) / 2) {
        int n_a = triangular_root(row);
        row -= n_a * (n_a + 1) / 2;
        return {n_a, seen - n_a};
    }
    int back = rows_of_pairs(seen) - 1 - row, n_b = triangular_root(back);
    row = n_b - (back - n_b * (n_b + 1) / 2);
    return {seen - n_b, n_b};
}

// What a row leads to -------------------------------------------------------------------------

struct After {
    double y_s, x_s, y_l, x_l, stay;  // rejecting, accepting: short group, long group; irrelevant
};

struct Successors {
    const double *reject_s, *accept_s, *long_row, *own;
    Hull reject_hull, accept_hull, long_hull, own_hull;
    // Where the rows of the short group's successor run along the other group: its columns.
    const double* columns;
    const Hull* column_hulls;
    int columns_step, column;

    template <bool MIXED>
    __device__ __forceinline__ After at(int k, bool wanted) const {
        After v;
        double none = infinity();
        if (MIXED) {
            Hull h = wanted ? column_hulls[k] : EMPTY;
            const double* cell = columns + (Long)k * columns_step + column;
            v.y_s = inside(column, h) ? cell[0] : none;
            v.x_s = inside(column + 1, h) ? cell[1] : none;
        } else {
            v.y_s = wanted && inside(k, reject_hull) ? reject_s[k] : none;
            v.x_s = wanted && inside(k, accept_hull) ? accept_s[k] : none;
        }
        v.y_l = wanted && inside(k, long_hull) ? long_row[k] : none;
        v.x_l = wanted && inside(k + 1, long_hull) ? long_row[k + 1] : none;
        v.stay = LABELLED ? (wanted && inside(k, own_hull) ? own[k] : none) : 0.0;
        return v;
    }
};

// The hull of a column of a pair.
__device__ __forceinline__ Hull column_hull(const Hull* rows, int n, int column, int lane) {
    int lo = EMPTY, hi = 0;
    for (int i = 0; i < n; i += WARP) {
        bool has = i + lane < n && inside(column, rows[i + lane]);
        unsigned bits = __ballot_sync(ALL, has);
        if (bits) {
            lo = min(lo, i + __ffs(bits) - 1);
            hi = i + WARP - __clz(bits);
        }
    }
    return (Hull)hi << 16 | (Hull)lo;
}

// Costs to go and decisions -------------------------------------------------------------------

struct Levels {
    const double* steps;  // (4 (K + 1), 3), see tables.cost_levels
    const int* first;     // (4 (cells + 1))
    const double* scale;  // (4, 2)
    int n_levels, n_cells;
};

// One side of one group: weights, costs, and the weights' total.
struct Side {
    const double *weights, *costs;
    double total;
};

__device__ __forceinline__ Side side_of(const double* prices, int n_levels, int side) {
#if LEVELS == 3
    return {0, 0, prices[side]};
#else
    const double* weights = prices + side * (2 * n_levels + 1);
    return {weights, weights + n_levels, weights[2 * n_levels]};
#endif
}

struct Prices {
    Side s0, s1, l0, l1;  // short and long group, proposed rejects and accepts
    int short_side, long_side;
    double stay, tie;
};

__device__ __forceinline__ Prices prices_of(
    const double* table, int n_levels, bool turned, double tie
) {
    int s = turned ? 2 : 0, l = 2 - s;
    int end = 4 * (LEVELS == 3 ? 1 : 2 * n_levels + 1);
    return {side_of(table, n_levels, s), side_of(table, n_levels, s + 1),
            side_of(table, n_levels, l), side_of(table, n_levels, l + 1), s, l, table[end], tie};
}

struct Codes {
    int s, l;
};

// Is everybody of the group accepted (up), is everybody rejected (down)?
struct Notes {
    bool up_s, down_s, up_l, down_l;
};

#if LEVELS == 1

__device__ __forceinline__ double back_up(const After& v, const Prices& p, const Levels&) {
    double value = (p.s0.weights[0] * lesser(v.y_s, p.s0.costs[0] + v.x_s)
                    + p.s1.weights[0] * lesser(v.x_s, p.s1.costs[0] + v.y_s))
                 + (p.l0.weights[0] * lesser(v.y_l, p.l0.costs[0] + v.x_l)
                    + p.l1.weights[0] * lesser(v.x_l, p.l1.costs[0] + v.y_l));
    return LABELLED ? value + p.stay * v.stay : value;
}

__device__ __forceinline__ Notes notes_of(const After& v, const Prices& p) {
    return {v.y_s > (p.s0.costs[0] + v.x_s) + p.tie, v.x_s > (p.s1.costs[0] + v.y_s) + p.tie,
            v.y_l > (p.l0.costs[0] + v.x_l) + p.tie, v.x_l > (p.l1.costs[0] + v.y_l) + p.tie};
}

__device__ __forceinline__ Codes codes_of(const After& v, const Prices& p, const Levels&) {
    Notes note = notes_of(v, p);
    return {note.down_s - note.up_s, note.down_l - note.up_l};
}

#elif LEVELS == 2

__device__ __forceinline__ double add_side(double over, const Side& side, int n_levels) {
    // Below its cheapest level nobody is overruled.
    if (!__any_sync(ALL, over > side.costs[0])) return side.total * over;
    double even = 0.0, odd = 0.0;
    int i = 0;
    for (; i + 1 < n_levels; i += 2) {
        even += side.weights[i] * lesser(over, side.costs[i]);
        odd += side.weights[i + 1] * lesser(over, side.costs[i + 1]);
    }
    if (i < n_levels) even += side.weights[i] * lesser(over, side.costs[i]);
    return even + odd;
}

__device__ __forceinline__ double gap_above(double x, double y) {
    // Differences of infinities would not be numbers.
    x = lesser(x, FINITE), y = lesser(y, FINITE);
    return x - lesser(x, y);
}

// With m = min(x, y), d = x - y: (sum of w) m + sum of w1 min(d+, C1) + w0 min(d-, C0).
__device__ __forceinline__ double back_up(const After& v, const Prices& p, const Levels& levels) {
    double value = (p.s0.total + p.s1.total) * lesser(v.x_s, v.y_s)
                 + (p.l0.total + p.l1.total) * lesser(v.x_l, v.y_l);
    if (LABELLED) value += p.stay * v.stay;
    value += add_side(gap_above(v.y_s, v.x_s), p.s0, levels.n_levels);
    value += add_side(gap_above(v.x_s, v.y_s), p.s1, levels.n_levels);
    value += add_side(gap_above(v.y_l, v.x_l), p.l0, levels.n_levels);
    value += add_side(gap_above(v.x_l, v.y_l), p.l1, levels.n_levels);
    return value;
}

__device__ __forceinline__ int worth(double over, const Side& side, int n_levels, double tie) {
    int count = 0;
    if (over > side.costs[0])
        for (int i = 0; i < n_levels; ++i) count += over > side.costs[i] + tie;
    return count;
}

__device__ __forceinline__ Codes codes_of(const After& v, const Prices& p, const Levels& levels) {
    int n = levels.n_levels;
    return {worth(gap_above(v.x_s, v.y_s), p.s1, n, p.tie)
                - worth(gap_above(v.y_s, v.x_s), p.s0, n, p.tie),
            worth(gap_above(v.x_l, v.y_l), p.l1, n, p.tie)
                - worth(gap_above(v.y_l, v.x_l), p.l0, n, p.tie)};
}

#else

// How many sorted costs of a side are below a gap, found from the cell of a grid the gap lies in.
__device__ __forceinline__ int below(double gap, double slack, const Levels& levels, int side) {
    const double* scale = levels.scale + 2 * side;
    int cell = (int)(lesser(gap, scale[1]) * scale[0]);
    int m = levels.first[side * levels.n_cells + cell];
    while (levels.steps[3 * m] < gap - slack) ++m;
    return m;
}

__device__ __forceinline__ double group_saving(double x, double y, const Levels& levels, int side) {
    double over = lesser(x, FINITE) - lesser(y, FINITE), gap = fabs(over);
    int m = below(gap, 0.0, levels, side + (over > 0.0));
    return levels.steps[3 * m + 1] + levels.steps[3 * m + 2] * gap;
}

__device__ __forceinline__ double back_up(const After& v, const Prices& p, const Levels& levels) {
    double value = (p.s0.total + p.s1.total) * lesser(v.x_s, v.y_s)
                 + (p.l0.total + p.l1.total) * lesser(v.x_l, v.y_l);
    if (LABELLED) value += p.stay * v.stay;
    value += group_saving(v.x_s, v.y_s, levels, p.short_side);
    return value + group_saving(v.x_l, v.y_l, levels, p.long_side);
}

__device__ __forceinline__ int group_code(
    double x, double y, double tie, const Levels& levels, int side
) {
    double over = lesser(x, FINITE) - lesser(y, FINITE);
    int up = over > 0.0;
    int m = below(fabs(over), tie, levels, side + up) - (side + up) * (levels.n_levels + 1);
    return up ? m : -m;
}

__device__ __forceinline__ Codes codes_of(const After& v, const Prices& p, const Levels& levels) {
    return {group_code(v.x_s, v.y_s, p.tie, levels, p.short_side),
            group_code(v.x_l, v.y_l, p.tie, levels, p.long_side)};
}

#endif

// Where decisions go --------------------------------------------------------------------------

struct Record {
    CUT* cuts;
    Long* dense_at;  // where the codes of each row begin, -1 for none
    CODE* codes;
    unsigned long long* used;
};

// A row is regular if everybody of the short group is rejected in its first states and accepted in
// its last, with the long group the other way round: the answers, or their opposites, are ones and
// then zeros.
struct Ones {
    int count;

    // Whether the next bits, the lowest first, go on so after so many states.
    __device__ __forceinline__ unsigned add(unsigned bits, int before) {
        unsigned broken = (bits & (bits + 1)) | (count != before ? bits : 0);
        count += __popc(bits);
        return broken;
    }
};

__device__ __forceinline__ void write_cuts(
    CUT* cuts, int lane, int lo, int hi, int s1, int s2, int l1, int l2
) {
#if LEVELS == 1
    if (lane < CUTS)
        cuts[lane] = lane == 0 ? lo : lane == 1 ? hi : lane == 2 ? s1 : lane == 3 ? s2
                   : lane == 4 ? l1 : l2;
#else
    if (lane < 2) cuts[lane] = lane == 0 ? lo : hi;
#endif
}

__device__ __forceinline__ Long take_codes(const Record& record, int n, int lane) {
    unsigned long long start = 0;
    if (lane == 0) start = atomicAdd(record.used, 2ull * n);
    return __shfl_sync(ALL, start, 0);
}

// One row of one layer ------------------------------------------------------------------------

struct Task {
    const double* next;
    double* values;
    const Hull* next_hulls;
    Hull* hulls;
    const Long* starts;
    const Hull* fair;  // null: no checkpoint
    const unsigned char* fair_each;
    const Long* fair_at;
};

template <bool MIXED>
__device__ __forceinline__ Hull back_up_row(
    const Successors& after, const Prices& prices, const Levels& levels, double* out, int lo,
    int hi, const unsigned char* each, const Record& record, Long row, int lane
) {
#if RECORD
    int first = EMPTY, last = -1, done = 0;
    unsigned broken = 0;
    Ones down_s = {0}, not_up_s = {0}, up_l = {0}, not_down_l = {0};
#endif
    for (int begin = lo & ~3; begin < hi; begin += UNROLL * WARP) {
        After v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            int k = begin + u * WARP + lane;
            v[u] = after.at<MIXED>(k, k >= lo && k < hi);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            int k0 = begin + u * WARP, k = k0 + lane;
            if (k0 >= hi) break;
            bool here = k >= lo && k < hi;
            double value = back_up(v[u], prices, levels);
            if (each && here && !each[k]) value = infinity();
            if (here) out[k] = value;
#if RECORD
            unsigned alive = __ballot_sync(ALL, here && value < infinity());
            if (alive) {
                first = min(first, k0 + __ffs(alive) - 1);
                last = k0 + WARP - 1 - __clz(alive);
            }
#if LEVELS == 1
            int skip = max(lo - k0, 0);
            Notes note = notes_of(v[u], prices);
            broken |= __ballot_sync(ALL, here && value > FINITE);
            broken |= down_s.add(__ballot_sync(ALL, here && note.down_s) >> skip, done);
            broken |= not_up_s.add(__ballot_sync(ALL, here && !note.up_s) >> skip, done);
            broken |= up_l.add(__ballot_sync(ALL, here && note.up_l) >> skip, done);
            broken |= not_down_l.add(__ballot_sync(ALL, here && !note.down_l) >> skip, done);
            done += min(WARP, hi - k0) - skip;
#endif
#endif
        }
    }
#if RECORD
    CUT* cuts = record.cuts + row * (LEVELS == 1 ? CUTS : 2);
    if (LEVELS == 1 && !broken) {
        write_cuts(cuts, lane, lo, hi, lo + down_s.count, lo + not_up_s.count, lo + up_l.count,
                   lo + not_down_l.count);
        if (lane == 0) record.dense_at[row] = -1;
        return (Hull)hi << 16 | (Hull)lo;
    }
    if (last < 0) {
        write_cuts(cuts, lane, 0, 0, 0, 0, 0, 0);
        if (lane == 0) record.dense_at[row] = -1;
        return EMPTY;
    }
    lo = first, hi = last + 1;
    write_cuts(cuts, lane, lo, hi, (CUT)~0u, 0, 0, 0);
    Long at = take_codes(record, hi - lo, lane);
    if (lane == 0) record.dense_at[row] = at;
    for (int k = lo + lane; k < hi; k += WARP) {
        Codes code = codes_of(after.at<MIXED>(k, true), prices, levels);
        bool alive = out[k] < infinity();
        CODE dead = (CODE)(1ll << (8 * sizeof(CODE) - 1));
        record.codes[at + k - lo] = alive ? (CODE)code.s : dead;
        record.codes[at + hi - lo + k - lo] = alive ? (CODE)code.l : dead;
    }
#endif
    return (Hull)hi << 16 | (Hull)lo;
}

// Row number `index` of its layer, which is `row` of those with so many people seen.
__device__ __forceinline__ void back_up_one(
    const Task& task, int seen, int row, int index, const double* price_table, double tie,
    const Levels& levels, const Record& record, Long record_row, int lane
) {
    Pair pair = pair_of(seen, row);
    bool turned = pair.turned();
    Pair more_a = {pair.n_a + 1, pair.n_b}, more_b = {pair.n_a, pair.n_b + 1};
    Pair ahead = turned ? more_a : more_b, across = turned ? more_b : more_a;
    bool mixed = across.turned() != turned;
    int cells = pair.cells();

    Successors after;
    const double* across_values = task.next + across.start(task.starts);
    const Hull* across_hulls = task.next_hulls + across.first_row();
    after.columns = across_values, after.columns_step = across.step(), after.column = row;
    after.column_hulls = across_hulls;
    after.reject_s = across_values + (Long)row * across.step();
    after.accept_s = after.reject_s + across.step();
    after.reject_hull = mixed ? column_hull(across_hulls, cells, row, lane) : across_hulls[row];
    after.accept_hull =
        mixed ? column_hull(across_hulls, cells, row + 1, lane) : across_hulls[row + 1];
    after.long_row = task.next + ahead.start(task.starts) + (Long)row * ahead.step();
    after.long_hull = task.next_hulls[ahead.first_row() + row];
    Long own = pair.start(task.starts) + (Long)row * pair.step();
    after.own = task.next + own;
    after.own_hull = LABELLED ? task.next_hulls[index] : EMPTY;

    int lo = max(min(low(after.reject_hull), low(after.accept_hull)),
                 max(low(after.long_hull) - 1, 0));
    int hi = min(max(high(after.reject_hull), high(after.accept_hull)),
                 min(high(after.long_hull), cells));
    if (LABELLED) {
        // Whoever is irrelevant leaves the counters as they are.
        lo = max(lo, low(after.own_hull));
        hi = min(hi, high(after.own_hull));
    }
    const unsigned char* each = 0;
    if (task.fair) {
        lo = max(lo, low(task.fair[index]));
        hi = min(hi, high(task.fair[index]));
        if (task.fair_each) each = task.fair_each + task.fair_at[index];
    }
    Hull hull = EMPTY;
    if (lo < hi) {
        Prices prices = prices_of(price_table, levels.n_levels, turned, tie);
        double* out = task.values + own;
        hull = mixed ? back_up_row<true>(after, prices, levels, out, lo, hi, each, record,
                                         record_row, lane)
                     : back_up_row<false>(after, prices, levels, out, lo, hi, each, record,
                                          record_row, lane);
    }
#if RECORD
    else {
        write_cuts(record.cuts + record_row * (LEVELS == 1 ? CUTS : 2), lane, 0, 0, 0, 0, 0, 0);
        if (lane == 0) record.dense_at[record_row] = -1;
    }
#endif
    if (lane == 0) task.hulls[index] = hull;
}

// Launches ------------------------------------------------------------------------------------

// Wait for all blocks, which are all resident.
__device__ __forceinline__ void meet(unsigned* arrived, unsigned round) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < round * gridDim.x) {}
        __threadfence();
    }
    __syncthreads();
}

// Layers t_from - 1 ... t_to.  Layer t is kept in buffer t % 2.  fair strikes out states of the
// last of them.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) back_up_layers(
    double* values_even, double* values_odd, Hull* hulls_even, Hull* hulls_odd, const Long* starts,
    const double* prices, int n_prices, int price_steps, double tie,
    const double* level_steps, const int* level_first, const double* level_scale, int n_levels,
    int n_cells, const Hull* fair, const unsigned char* fair_each, const Long* fair_at,
    CUT* cuts, Long* dense_at, CODE* codes, unsigned long long* used, const Long* layer_starts,
    Long first_row, int t_from, int t_to, unsigned* arrived
) {
    __shared__ double price_table[MOST_PRICES];
    int lane = threadIdx.x % WARP;
    int warp = (blockIdx.x * BLOCK + threadIdx.x) / WARP, warps = gridDim.x * (BLOCK / WARP);
    Record record = {cuts, dense_at, codes, used};
    for (int t = t_from - 1; t >= t_to; --t) {
        int step = price_steps > 1 ? t : 0;
        if (t == t_from - 1 || price_steps > 1)
            for (int i = threadIdx.x; i < n_prices; i += BLOCK)
                price_table[i] = prices[(Long)step * n_prices + i];
        __syncthreads();
        Levels levels = {level_steps, level_first, level_scale, n_levels, n_cells};
#if LEVELS == 3
        levels.steps += (Long)step * 12 * (n_levels + 1);
        levels.first += (Long)step * 4 * n_cells;
        levels.scale += (Long)step * 8;
#endif
        bool even = t % 2 == 0, strike = t == t_to && fair;
        Task task = {even ? values_odd : values_even, even ? values_even : values_odd,
                     even ? hulls_odd : hulls_even,   even ? hulls_even : hulls_odd, starts,
                     strike ? fair : 0, strike ? fair_each : 0, fair_at};
        Long record_row = RECORD ? layer_starts[t] - first_row : 0;
        int n_rows = rows_of_layer(t), seen = LABELLED ? 0 : t;
        for (int i = warp; i < n_rows; i += warps) {
            int row = i;
            if (LABELLED) {
                while (rows_of_smaller_pairs(seen + 1) <= i) ++seen;
                row -= rows_of_smaller_pairs(seen);
            }
            back_up_one(task, seen, row, i, price_table, tie, levels, record, record_row + i, lane);
        }
        meet(arrived, t_from - t);
    }
}

// The last layer: cost to go 0 where the property holds, infinite elsewhere.
extern "C" __global__ void set_terminal(
    double* values, Hull* hulls, const Long* starts, const Hull* fair,
    const unsigned char* fair_each, const Long* fair_at, CUT* cuts, Long* dense_at, CODE* codes,
    unsigned long long* used, int t
) {
    int lane = threadIdx.x % WARP;
    int warp = (blockIdx.x * BLOCK + threadIdx.x) / WARP, warps = gridDim.x * (BLOCK / WARP);
    Record record = {cuts, dense_at, codes, used};
    int n_rows = rows_of_layer(t), seen = LABELLED ? 0 : t;
    for (int i = warp; i < n_rows; i += warps) {
        int row = i;
        if (LABELLED) {
            while (rows_of_smaller_pairs(seen + 1) <= i) ++seen;
            row -= rows_of_smaller_pairs(seen);
        }
        Pair pair = pair_of(seen, row);
        double* out = values + pair.start(starts) + (Long)row * pair.step();
        Hull hull = fair[i];
        int lo = low(hull), hi = high(hull);
        const unsigned char* each = fair_each ? fair_each + fair_at[i] : 0;
        bool holes = false;
        for (int k = lo + lane; k < hi; k += WARP) {
            bool holds = !each || each[k];
            out[k] = holds ? 0.0 : infinity();
            holes |= !holds;
        }
        holes = __any_sync(ALL, holes);
        if (lane == 0) hulls[i] = hull;
#if RECORD
        if (lo >= hi) lo = hi = 0;
        // Nothing is decided here: the row only says which counters are fair.
        write_cuts(cuts + (Long)i * (LEVELS == 1 ? CUTS : 2), lane, lo, hi, holes ? (CUT)~0u : 0,
                   0, 0, 0);
        Long at = holes ? take_codes(record, hi - lo, lane) : -1;
        if (lane == 0) dense_at[i] = at;
        if (holes)
            for (int k = lo + lane; k < hi; k += WARP) {
                CODE code = each[k] ? 0 : (CODE)(1ll << (8 * sizeof(CODE) - 1));
                codes[at + k - lo] = codes[at + hi - lo + k - lo] = code;
            }
#endif
    }
}

// How many codes each row has, from lengths[1] on.
extern "C" __global__ void code_lengths(
    const CUT* cuts, const Long* dense_at, Long n_rows, Long* lengths
) {
    const int width = LEVELS == 1 ? CUTS : 2;
    for (Long i = blockIdx.x * (Long)BLOCK + threadIdx.x; i < n_rows; i += gridDim.x * (Long)BLOCK)
        lengths[i + 1] =
            dense_at[i] < 0 ? 0 : 2 * ((Long)cuts[i * width + 1] - cuts[i * width]);
}

// Put the codes of rows in order: those of row i from order[i] on.
extern "C" __global__ void gather_codes(
    const CODE* codes, const Long* dense_at, const Long* order, Long n_rows, CODE* out
) {
    int lane = threadIdx.x % WARP;
    Long warp = (blockIdx.x * (Long)BLOCK + threadIdx.x) / WARP;
    Long warps = gridDim.x * (Long)(BLOCK / WARP);
    for (Long i = warp; i < n_rows; i += warps) {
        if (dense_at[i] < 0) continue;
        Long n = order[i + 1] - order[i];
        for (Long j = lane; j < n; j += WARP) out[order[i] + j] = codes[dense_at[i] + j];
    }
}
