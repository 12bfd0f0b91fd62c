// Backward induction on a CUDA device.  Numbers in, arrays filled; see cuda.py for who calls.
//
// A warp takes a strip of rows of states (layout.py) at a time and walks along each, so that all it
// reads and writes is contiguous.  Each row remembers a hull [lo, hi): outside it every cost to go
// is infinite, nothing is computed and nothing is read.  Layers alternate between two buffers.  One
// launch goes through many layers: the blocks are all resident and meet at a barrier after each.
//
// Sums are fused in the order in which the compiled backend fuses them, so that a gain that is a tie
// but for rounding is one for both.
//
// LABELLED  0 or 1: the family
// LEVELS    1: one cost level; 2: a few, gone through; 3: many, searched
// RECORD    0 or 1: whether decisions are written
// TILES     0 or 1: the kernels for values alone instead, see the end
// CUT, CODE the types of cuts and codes

#define WARP 32
#define ALL 0xffffffffu
#define FINITE 1e290
#define EMPTY 0xffffu  // as a hull: lo beyond every row, hi = 0
#define UNROLL 2  // steps along a row that are under way at once
#define MOST_SHIFT 1  // strips have at most 2^1 rows
#define STRIPS_PER_WARP 6
#define MOST_PRICES 261  // of one step: four sides of 32 weights, 32 costs and a total; the stay

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

// Consecutive rows of one pair.
struct Strip {
    Pair pair;
    int first, end;
};

// How the rows of all pairs with so many people seen are cut into strips of 2^shift.
struct Strips {
    int seen, shift;

    // Strips of pairs with less than m people in the short group; of either orientation.
    __device__ __forceinline__ int before(int m) const {
        int q = m >> shift, rest = m - (q << shift);
        return m + ((q * (q - 1) / 2) << shift) + rest * q;
    }
    __device__ __forceinline__ int upright() const { return before(seen / 2 + 1); }
    __device__ __forceinline__ int count() const { return upright() + before((seen + 1) / 2); }

    __device__ __forceinline__ Strip at(int i) const {
        bool turned = i >= upright();
        if (turned) i -= upright();
        // before(m) is m^2 / 2^(shift + 1) + m / 2, or a little more.
        float half = 0.5f * (1 << shift);
        int m = (int)(sqrtf(half * half + 4.0f * half * i) - half);
        while (before(m) > i) --m;
        while (before(m + 1) <= i) ++m;
        int first = (i - before(m)) << shift;
        Pair pair = turned ? Pair{seen - m, m} : Pair{m, seen - m};
        return {pair, first, min(first + (1 << shift), m + 1)};
    }
};

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

    // The states from which all successors are inside their hulls.
    __device__ __forceinline__ Hull interior() const {
        int lo = max(max(low(reject_hull), low(accept_hull)), low(long_hull));
        int hi = min(min(high(reject_hull), high(accept_hull)), high(long_hull) - 1);
        if (LABELLED) lo = max(lo, low(own_hull)), hi = min(hi, high(own_hull));
        return (Hull)max(hi, 0) << 16 | (Hull)lo;
    }

    __device__ __forceinline__ After inside_at(int k) const {
        return {reject_s[k], accept_s[k], long_row[k], long_row[k + 1], LABELLED ? own[k] : 0.0};
    }

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

    __device__ __forceinline__ Levels at(int step) const {
        if (LEVELS != 3) return *this;
        return {steps + (Long)step * 12 * (n_levels + 1), first + (Long)step * 4 * n_cells,
                scale + 8 * step, n_levels, n_cells};
    }
};

#if LEVELS == 1

struct Side {
    double weight, cost;
};

__device__ __forceinline__ Side side_of(const double* table, int, int side) {
    return {table[3 * side], table[3 * side + 1]};
}

#else

// Of many levels only the total weight.
struct Side {
    const double *weights, *costs;
    double total;
};

__device__ __forceinline__ Side side_of(const double* table, int n_levels, int side) {
    if (LEVELS == 3) return {0, 0, table[side]};
    const double* weights = table + side * (2 * n_levels + 1);
    return {weights, weights + n_levels, weights[2 * n_levels]};
}

#endif

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
    double value = p.s1.weight * lesser(v.x_s, p.s1.cost + v.y_s);
    value = fma(p.s0.weight, lesser(v.y_s, p.s0.cost + v.x_s), value);
    if (LABELLED) value = fma(p.stay, v.stay, value);
    value = fma(p.l1.weight, lesser(v.x_l, p.l1.cost + v.y_l), value);
    return fma(p.l0.weight, lesser(v.y_l, p.l0.cost + v.x_l), value);
}

__device__ __forceinline__ Notes notes_of(const After& v, const Prices& p) {
    return {v.y_s > (p.s0.cost + v.x_s) + p.tie, v.x_s > (p.s1.cost + v.y_s) + p.tie,
            v.y_l > (p.l0.cost + v.x_l) + p.tie, v.x_l > (p.l1.cost + v.y_l) + p.tie};
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
    // Irregular rows in the order in which they are met: their numbers, where their codes begin;
    // how many codes and rows there are so far.
    Long *dense_rows, *dense_at;
    CODE* codes;
    unsigned long long* used;

    // Write the cuts of a row; returns where its codes go.
    __device__ __forceinline__ CODE* open(Long row, int lo, int hi, int lane) const {
        write_cuts(row, lane, lo, hi, (CUT)~0u, 0, 0, 0);
        unsigned long long at = 0;
        if (lane == 0) {
            at = atomicAdd(used, 2ull * (hi - lo));
            unsigned long long slot = atomicAdd(used + 1, 1ull);
            dense_rows[slot] = row;
            dense_at[slot] = at;
        }
        return codes + __shfl_sync(ALL, at, 0);
    }

    __device__ __forceinline__ void write_cuts(
        Long row, int lane, int lo, int hi, int s1, int s2, int l1, int l2
    ) const {
        if (LEVELS == 1 && lane < 6)
            cuts[6 * row + lane] = lane == 0 ? lo : lane == 1 ? hi : lane == 2 ? s1
                                 : lane == 3 ? s2 : lane == 4 ? l1 : l2;
        if (LEVELS != 1 && lane < 2) cuts[2 * row + lane] = lane == 0 ? lo : hi;
    }

    __device__ __forceinline__ void write_empty(Long row, int lane) const {
        write_cuts(row, lane, 0, 0, 0, 0, 0, 0);
    }
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

#define DEAD (CODE)(1ll << (8 * sizeof(CODE) - 1))

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

// What is found out about one row.
struct Row {
    double* out;
    int lo, hi;
    const unsigned char* each;  // null: all states inside the hull are fair
#if RECORD
    int first, last, done;  // the first and last feasible state; how many were looked at
    unsigned broken;
    Ones down_s, not_up_s, up_l, not_down_l;
#endif

    __device__ __forceinline__ bool has(int k) const { return k >= lo && k < hi; }

    // The states from k0 on, one a lane; WHOLE: all of them are inside the hull.
    template <bool WHOLE>
    __device__ __forceinline__ void add(
        const After& v, int k0, int lane, const Prices& prices, const Levels& levels
    ) {
        int k = k0 + lane;
        bool here = WHOLE || has(k);
        double value = back_up(v, prices, levels);
        if (each && here && !each[k]) value = infinity();
        if (here) out[k] = value;
#if RECORD
        unsigned alive = __ballot_sync(ALL, here && value < infinity());
        if (alive) {
            first = min(first, k0 + __ffs(alive) - 1);
            last = k0 + WARP - 1 - __clz(alive);
        }
#if LEVELS == 1
        int skip = WHOLE ? 0 : max(lo - k0, 0);
        Notes note = notes_of(v, prices);
        broken |= __ballot_sync(ALL, here && value > FINITE);
        broken |= down_s.add(__ballot_sync(ALL, here && note.down_s) >> skip, done);
        broken |= not_up_s.add(__ballot_sync(ALL, here && !note.up_s) >> skip, done);
        broken |= up_l.add(__ballot_sync(ALL, here && note.up_l) >> skip, done);
        broken |= not_down_l.add(__ballot_sync(ALL, here && !note.down_l) >> skip, done);
        done += WHOLE ? WARP : min(WARP, hi - k0) - skip;
#endif
#endif
    }
};

template <bool MIXED>
__device__ __forceinline__ Hull back_up_row(
    const Successors& after, const Prices& prices, const Levels& levels, double* out, int lo,
    int hi, const unsigned char* each, const Record& record, Long number, int lane
) {
    Row row = {out, lo, hi, each};
#if RECORD
    row.first = EMPTY, row.last = -1;
#endif
    Hull whole = after.interior();
    int whole_lo = max(low(whole), lo), whole_hi = min(high(whole), hi) - UNROLL * WARP;
    for (int k0 = lo & ~3; k0 < hi;) {
        if (!MIXED && k0 >= whole_lo && k0 <= whole_hi) {
            After v[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) v[u] = after.inside_at(k0 + u * WARP + lane);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u)
                row.add<true>(v[u], k0 + u * WARP, lane, prices, levels);
            k0 += UNROLL * WARP;
        } else {
            After v = after.at<MIXED>(k0 + lane, row.has(k0 + lane));
            row.add<false>(v, k0, lane, prices, levels);
            k0 += WARP;
        }
    }
#if RECORD
    if (LEVELS == 1 && !row.broken) {
        record.write_cuts(number, lane, lo, hi, lo + row.down_s.count, lo + row.not_up_s.count,
                          lo + row.up_l.count, lo + row.not_down_l.count);
        return (Hull)hi << 16 | (Hull)lo;
    }
    if (row.last < 0) {
        record.write_empty(number, lane);
        return EMPTY;
    }
    lo = row.first, hi = row.last + 1;
    CODE* codes = record.open(number, lo, hi, lane);
    for (int k = lo + lane; k < hi; k += WARP) {
        Codes code = codes_of(after.at<MIXED>(k, true), prices, levels);
        bool alive = out[k] < infinity();
        codes[k - lo] = alive ? (CODE)code.s : DEAD;
        codes[hi - lo + k - lo] = alive ? (CODE)code.l : DEAD;
    }
#endif
    return (Hull)hi << 16 | (Hull)lo;
}

template <bool MIXED>
__device__ __forceinline__ void back_up_strip(
    const Task& task, const Strip& strip, Pair ahead, Pair across, const Prices& prices,
    const Levels& levels, const Record& record, Long record_row, int lane
) {
    Pair pair = strip.pair;
    int row = strip.first, cells = pair.cells(), index = pair.first_row() + row;
    int own_step = pair.step(), ahead_step = ahead.step(), across_step = across.step();
    double* out = task.values + pair.start(task.starts) + (Long)row * own_step;
    const Hull* across_hulls = task.next_hulls + across.first_row();
    const Hull* ahead_hulls = task.next_hulls + ahead.first_row();
    Successors after;
    after.columns = task.next + across.start(task.starts), after.columns_step = across_step;
    after.column_hulls = across_hulls;
    after.reject_s = after.columns + (Long)row * across_step;
    after.long_row = task.next + ahead.start(task.starts) + (Long)row * ahead_step;
    after.own = task.next + (out - task.values);
    after.reject_hull = MIXED ? column_hull(across_hulls, cells, row, lane) : across_hulls[row];
    Hull next_across = MIXED ? 0 : across_hulls[row + 1], next_long = ahead_hulls[row];
    for (; row < strip.end; ++row, ++index) {
        after.column = row;
        after.accept_s = after.reject_s + across_step;
        after.accept_hull =
            MIXED ? column_hull(across_hulls, cells, row + 1, lane) : next_across;
        after.long_hull = next_long;
        if (row + 1 < strip.end) {
            if (!MIXED) next_across = across_hulls[row + 2];
            next_long = ahead_hulls[row + 1];
        }
        int lo = max(min(low(after.reject_hull), low(after.accept_hull)),
                     max(low(after.long_hull) - 1, 0));
        int hi = min(max(high(after.reject_hull), high(after.accept_hull)),
                     min(high(after.long_hull), cells));
        if (LABELLED) {
            // Whoever is irrelevant leaves the counters as they are.
            after.own_hull = task.next_hulls[index];
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
        if (lo < hi)
            hull = back_up_row<MIXED>(after, prices, levels, out, lo, hi, each, record,
                                      record_row + index, lane);
#if RECORD
        else
            record.write_empty(record_row + index, lane);
#endif
        if (lane == 0) task.hulls[index] = hull;
        after.reject_hull = after.accept_hull;
        after.reject_s = after.accept_s;
        after.long_row += ahead_step;
        after.own += own_step;
        out += own_step;
    }
}

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

#if !TILES

// Launches ------------------------------------------------------------------------------------

// Layers t_from - 1 ... t_to.  Layer t is kept in buffer t % 2.  fair strikes out states of the
// last of them.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) back_up_layers(
    double* values_even, double* values_odd, Hull* hulls_even, Hull* hulls_odd, const Long* starts,
    const double* prices, int n_prices, int price_steps, double tie,
    const double* level_steps, const int* level_first, const double* level_scale, int n_levels,
    int n_cells, const Hull* fair, const unsigned char* fair_each, const Long* fair_at,
    CUT* cuts, Long* dense_rows, Long* dense_at, CODE* codes, unsigned long long* used,
    const Long* layer_starts, int t_from, int t_to, unsigned* counters
) {
    __shared__ double price_table[MOST_PRICES];
    int lane = threadIdx.x % WARP;
    int warp = (blockIdx.x * BLOCK + threadIdx.x) / WARP, warps = gridDim.x * (BLOCK / WARP);
    Record record = {cuts, dense_rows, dense_at, codes, used};
    for (int t = t_from - 1; t >= t_to; --t) {
        int step = price_steps > 1 ? t : 0;
        if (t == t_from - 1 || price_steps > 1)
            for (int i = threadIdx.x; i < n_prices; i += BLOCK)
                price_table[i] = prices[(Long)step * n_prices + i];
        __syncthreads();
        Levels all = {level_steps, level_first, level_scale, n_levels, n_cells};
        Levels levels = all.at(step);
        bool even = t % 2 == 0, strike = t == t_to && fair;
        Task task = {even ? values_odd : values_even, even ? values_even : values_odd,
                     even ? hulls_odd : hulls_even,   even ? hulls_even : hulls_odd, starts,
                     strike ? fair : 0, strike ? fair_each : 0, fair_at};
        Long record_row = RECORD ? layer_starts[t] : 0;
        // Short strips where there are few rows, so that every warp has some.
        int shift = 0;
        while (shift < MOST_SHIFT && rows_of_layer(t) >> shift > STRIPS_PER_WARP * warps) ++shift;
        Strips strips = {LABELLED ? 0 : t, shift};
        unsigned* taken = counters + 1 + (t_from - 1 - t);
        int passed = 0, i = warp;
        while (true) {
            while (i - passed >= strips.count() && strips.seen < t) {
                passed += strips.count();
                ++strips.seen;
            }
            if (i - passed >= strips.count()) break;
            int next = 0;
            if (lane == 0) next = warps + (int)atomicAdd(taken, 1u);
            Strip strip = strips.at(i - passed);
            Pair pair = strip.pair;
            bool turned = pair.turned();
            Pair more_a = {pair.n_a + 1, pair.n_b}, more_b = {pair.n_a, pair.n_b + 1};
            Pair ahead = turned ? more_a : more_b, across = turned ? more_b : more_a;
            Prices prices_here = prices_of(price_table, n_levels, turned, tie);
            if (across.turned() != turned)
                back_up_strip<true>(task, strip, ahead, across, prices_here, levels, record,
                                    record_row, lane);
            else
                back_up_strip<false>(task, strip, ahead, across, prices_here, levels, record,
                                     record_row, lane);
            i = __shfl_sync(ALL, next, 0);
        }
        meet(counters, t_from - t);
    }
}

// The last layer: cost to go 0 where the property holds, infinite elsewhere.
extern "C" __global__ void set_terminal(
    double* values, Hull* hulls, const Long* starts, const Hull* fair,
    const unsigned char* fair_each, const Long* fair_at, CUT* cuts, Long* dense_rows,
    Long* dense_at, CODE* codes, unsigned long long* used, const Long* layer_starts, int t
) {
    int lane = threadIdx.x % WARP;
    int warp = (blockIdx.x * BLOCK + threadIdx.x) / WARP, warps = gridDim.x * (BLOCK / WARP);
    Record record = {cuts, dense_rows, dense_at, codes, used};
    Strips strips = {LABELLED ? 0 : t, 0};
    int passed = 0;
    for (int i = warp; i < rows_of_layer(t); i += warps) {
        while (i - passed >= strips.count()) {
            passed += strips.count();
            ++strips.seen;
        }
        // Strips of one row, in the order of the rows but for the turned ones.
        Strip strip = strips.at(i - passed);
        Pair pair = strip.pair;
        int index = pair.first_row() + strip.first;
        double* out = values + pair.start(starts) + (Long)strip.first * pair.step();
        Hull hull = fair[index];
        int lo = low(hull), hi = high(hull);
        const unsigned char* each = fair_each ? fair_each + fair_at[index] : 0;
        bool holes = false;
        for (int k = lo + lane; k < hi; k += WARP) {
            bool holds = !each || each[k];
            out[k] = holds ? 0.0 : infinity();
            holes |= !holds;
        }
        holes = __any_sync(ALL, holes);
        if (lane == 0) hulls[index] = hull;
#if RECORD
        // Nothing is decided here: the row only says which counters are fair.
        Long number = layer_starts[t] + index;
        if (holes) {
            CODE* row_codes = record.open(number, lo, hi, lane);
            for (int k = lo + lane; k < hi; k += WARP)
                row_codes[k - lo] = row_codes[hi - lo + k - lo] = each[k] ? 0 : DEAD;
        } else if (lo < hi) {
            record.write_cuts(number, lane, lo, hi, 0, 0, 0, 0);
        } else {
            record.write_empty(number, lane);
        }
#endif
    }
}

// Put the codes of irregular rows in order: those of row order[i] at starts[i] ... starts[i + 1].
extern "C" __global__ void gather_codes(
    const CODE* codes, const Long* dense_at, const Long* order, const Long* starts, Long n_rows,
    CODE* out
) {
    int lane = threadIdx.x % WARP;
    Long warp = (blockIdx.x * (Long)BLOCK + threadIdx.x) / WARP;
    Long warps = gridDim.x * (Long)(BLOCK / WARP);
    for (Long i = warp; i < n_rows; i += warps) {
        const CODE* from = codes + dense_at[order[i]];
        for (Long j = lane; j < starts[i + 1] - starts[i]; j += WARP) out[starts[i] + j] = from[j];
    }
}

#endif

// Values alone, several layers at once -----------------------------------------------------------
//
// Without decisions nobody asks for rows.  A warp takes a tile of ROWS acceptances in a by
// 32 - LAYERS in b, one a lane, and walks down n_a.  What it needs of n_a + 1 in each of LAYERS
// layers it still holds in registers, so that memory is read and written once for all of them.  A
// layer needs the next acceptance in either group, hence LAYERS more rows and columns are read than
// written, and the next n_a is on its way meanwhile.  Flags say for each tile and n_a whether any
// cost to go is finite, in all of it (1), in the columns (2), rows (4) or corner (8) that others
// read too: nothing else is read, computed or written.  States that do not exist lead to others
// that do not exist only, and never raise a flag.

#if TILES

#define COLUMNS (WARP - LAYERS)

struct Tiles {
    const int* corners;  // k_a and, 16 bits higher, k_b of the first state; by their sum
    const int* before;   // tiles whose sum is less
    const Long* starts;  // of the states of each n_a
    int horizon, down;   // flags of a tile, and of a column of tiles

    __device__ __forceinline__ int step(int n_a) const { return horizon - n_a + 1; }
    __device__ __forceinline__ Long flag(int k_a, int k_b) const {
        return ((Long)(k_a / ROWS) * down + k_b / COLUMNS) * (horizon + 2);
    }
};

// Copies that a thread makes for itself, the last of which may be under way while it computes.
__device__ __forceinline__ void copy_later(double* to, const double* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void wait_for_all_but_the_last() {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

// Which of the flags a tile raises.
__device__ __forceinline__ int flags_of(unsigned first_rows, unsigned all_rows) {
    unsigned columns = (1u << LAYERS) - 1;
    return (all_rows != 0) | ((all_rows & columns) != 0) << 1 | (first_rows != 0) << 2
         | ((first_rows & columns) != 0) << 3;
}

// Begin to read what n_a needs of the tiles that were found to have finite states.
template <int DEEP>
__device__ __forceinline__ void fetch(
    double* to, const double* next, const Tiles& tiles, int n_a, int k_a, int k_b, int found, int lane
) {
    int step = tiles.step(n_a);
    const double* from = next + tiles.starts[n_a] + (Long)k_a * step + k_b + lane;
    found >>= lane < COLUMNS ? 0 : 1;
#pragma unroll
    for (int r = 0; r < ROWS + DEEP; ++r)
        if (found & (r < ROWS ? 1 : 4)) copy_later(to + r * WARP + lane, from + (Long)r * step);
    end_of_copies();
}

// Layer t from layer t + DEEP, for some values of n_a of one tile: a segment.
template <int DEEP>
__device__ __forceinline__ void back_up_segment(
    const double* next, double* values, const unsigned char* next_flags, unsigned char* flags,
    const Tiles& tiles, int corner, int segment, int length, int t, const double* price_table, int n_prices,
    int price_steps, double tie, const Levels& all_levels, double* room, int lane
) {
    int k_a = corner & 0xffff, k_b = corner >> 16;
    int least = k_a + segment * length, top = min(least + length - 1, t - k_b);
    // Each lane looks at one n_a: which of the tiles that are read there have a finite state?
    int n = top + DEEP - lane;
    int mine = 0;
    if (n >= least) {
        const unsigned char* f = next_flags + tiles.flag(k_a, k_b) + n;
        Long right = tiles.horizon + 2, below = (Long)tiles.down * right;
        mine = (f[0] & 1) | (f[right] & 2) | (f[below] & 4) | (f[below + right] & 8);
    }
    unsigned active = __ballot_sync(ALL, mine != 0);
    int raised = 0;
    double more[DEEP][ROWS + DEEP];
#pragma unroll
    for (int l = 0; l < DEEP; ++l)
#pragma unroll
        for (int r = 0; r < ROWS + DEEP; ++r) more[l][r] = infinity();
    int first = active ? __ffs(active) - 1 : WARP, end = WARP - __clz(active);
    if (active)
        fetch<DEEP>(room, next, tiles, top + DEEP - first, k_a, k_b, __shfl_sync(ALL, mine, first), lane);
    for (int i = first; i < end; ++i) {
        int n_a = top + DEEP - i;
        int found = __shfl_sync(ALL, mine, i) >> (lane < COLUMNS ? 0 : 1);
        int coming = __shfl_sync(ALL, mine, min(i + 1, WARP - 1));
        const double* arrived = room + (i - first) % 2 * (ROWS + DEEP) * WARP + lane;
        fetch<DEEP>(room + (i + 1 - first) % 2 * (ROWS + DEEP) * WARP, next, tiles,
                    max(n_a - 1, 0), k_a, k_b, i + 1 < end ? coming : 0, lane);
        wait_for_all_but_the_last();
        double here[ROWS + DEEP];
#pragma unroll
        for (int r = 0; r < ROWS + DEEP; ++r)
            here[r] = found & (r < ROWS ? 1 : 4) ? arrived[r * WARP] : infinity();
#pragma unroll
        for (int l = 0; l < DEEP; ++l) {
            int later = DEEP - 1 - l;
            Levels levels = all_levels.at(price_steps > 1 ? t + later : 0);
            Prices prices =
                prices_of(price_table + later * n_prices, levels.n_levels, false, tie);
            double out[ROWS + DEEP];
#pragma unroll
            for (int r = 0; r < ROWS + later; ++r) {
                double accept_b = __shfl_down_sync(ALL, here[r], 1);
                After v = {more[l][r], more[l][r + 1], here[r], accept_b, 0.0};
                out[r] = back_up(v, prices, levels);
            }
#pragma unroll
            for (int r = 0; r <= ROWS + later; ++r) {
                more[l][r] = here[r];
                here[r] = out[r];
            }
        }
        if (n_a > top) continue;
        bool exists = lane < COLUMNS && k_b + lane <= t - n_a;
        bool in_first = false, in_others = false;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            bool finite = exists && k_a + r <= n_a && here[r] < infinity();
            if (r < LAYERS)
                in_first |= finite;
            else
                in_others |= finite;
        }
        unsigned first_rows = __ballot_sync(ALL, in_first);
        unsigned all_rows = first_rows | __ballot_sync(ALL, in_others);
        if (!all_rows) continue;
        if (lane == i) raised = flags_of(first_rows, all_rows);
        double* to = values + tiles.starts[n_a] + (Long)k_a * tiles.step(n_a) + k_b + lane;
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (exists && k_a + r <= n_a) to[(Long)r * tiles.step(n_a)] = here[r];
    }
    if (n >= least && n <= top) flags[tiles.flag(k_a, k_b) + n] = raised;
}

// Layers t_from - 1 ... t_to; the last is in the first buffer if their number is even, after so
// many passes.
extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT) back_up_values(
    double* values, double* other_values, unsigned char* flags, unsigned char* other_flags,
    const int* corners, const int* before, const Long* starts, int horizon, int down,
    const double* prices, int n_prices, int price_steps, double tie,
    const double* level_steps, const int* level_first, const double* level_scale, int n_levels,
    int n_cells, int length, int t_from, int t_to, unsigned* counters
) {
    __shared__ double price_table[LAYERS * MOST_PRICES];
    __shared__ double rooms[BLOCK / WARP][2 * (ROWS + LAYERS) * WARP];
    double* room = rooms[threadIdx.x / WARP];
    int lane = threadIdx.x % WARP;
    int warp = (blockIdx.x * BLOCK + threadIdx.x) / WARP, warps = gridDim.x * (BLOCK / WARP);
    Tiles tiles = {corners, before, starts, horizon, down};
    for (int t = t_from, round = 1; t > t_to; ++round) {
        int deep = t - t_to >= LAYERS ? LAYERS : 1;
        t -= deep;
        for (int i = threadIdx.x; i < deep * n_prices; i += BLOCK)
            price_table[i] =
                prices[(price_steps > 1 ? (Long)t * n_prices : 0)
                       + (price_steps > 1 ? i : i % n_prices)];
        __syncthreads();
        Levels levels = {level_steps, level_first, level_scale, n_levels, n_cells};
        int segment = 0, passed = 0;
        for (int i = warp; segment * length <= t;) {
            int n_tiles = before[t - segment * length + 1];
            if (i - passed >= n_tiles) {
                passed += n_tiles;
                ++segment;
                continue;
            }
            int taken = 0;
            if (lane == 0) taken = warps + (int)atomicAdd(counters + round, 1u);
            int corner = corners[i - passed];
            if (deep == LAYERS)
                back_up_segment<LAYERS>(values, other_values, flags, other_flags, tiles, corner,
                                        segment, length, t, price_table, n_prices, price_steps, tie,
                                        levels, room, lane);
            else
                back_up_segment<1>(values, other_values, flags, other_flags, tiles, corner,
                                   segment, length, t, price_table, n_prices, price_steps, tie,
                                        levels, room, lane);
            i = __shfl_sync(ALL, taken, 0);
        }
        meet(counters, round);
        double* v = values;
        values = other_values, other_values = v;
        unsigned char* f = flags;
        flags = other_flags, other_flags = f;
    }
}

// Strike out what is unfair at layer t; if it is the last, everything else costs nothing.
extern "C" __global__ void strike_values(
    double* values, unsigned char* flags, const int* corners, const int* before,
    const Long* starts, int horizon, int down, const Hull* fair, const unsigned char* fair_each,
    const Long* fair_at, int t, int last
) {
    int lane = threadIdx.x % WARP;
    int warp = (blockIdx.x * BLOCK + threadIdx.x) / WARP, warps = gridDim.x * (BLOCK / WARP);
    Tiles tiles = {corners, before, starts, horizon, down};
    int n_tiles = before[t + 1];
    for (Long i = warp; i < (Long)n_tiles * (t + 1); i += warps) {
        int corner = corners[i % n_tiles], n_a = (int)(i / n_tiles);
        int k_a = corner & 0xffff, k_b = corner >> 16;
        if (n_a < k_a || n_a > t - k_b) continue;
        Pair pair = {n_a, t - n_a};
        unsigned char* flag = flags + tiles.flag(k_a, k_b) + n_a;
        bool was = last || *flag, in_first = false, in_others = false;
        k_b += lane;
        bool exists = lane < COLUMNS && k_b <= pair.n_b;
        for (int r = 0; r < ROWS; ++r, ++k_a) {
            if (!exists || k_a > n_a) continue;
            int index = pair.first_row() + (pair.turned() ? k_b : k_a);
            int k = pair.turned() ? k_a : k_b;
            bool holds = inside(k, fair[index]);
            if (holds && fair_each) holds = fair_each[fair_at[index] + k];
            double* value = values + starts[n_a] + (Long)k_a * tiles.step(n_a) + k_b;
            if (last) *value = holds ? 0.0 : infinity();
            if (!last && was && !holds) *value = infinity();
            bool finite = was && *value < infinity();
            (r < LAYERS ? in_first : in_others) |= finite;
        }
        unsigned first_rows = __ballot_sync(ALL, in_first);
        unsigned all_rows = first_rows | __ballot_sync(ALL, in_others);
        if (lane == 0) *flag = flags_of(first_rows, all_rows);
    }
}

#endif
