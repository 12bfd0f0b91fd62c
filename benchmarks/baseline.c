/* The obvious compiled synthesis: the paper's recursion, memoised over nested arrays.
 *
 *     v(s) = sum over x = (g, r, c) of theta(x) * min(v(s, keep), c + v(s, overrule))
 *
 * for demographic parity with bound NUMERATOR / DENOMINATOR and any finite set of inputs, each
 * given as GROUP PROPOSED COST PROBABILITY.  Prints the expected cost and the seconds it took.
 *
 *     cc -O2 -o baseline baseline.c -lm
 *     ./baseline 100 1 10  0 0 1 .25  0 1 1 .25  1 0 1 .25  1 1 1 .25
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct input { int group, proposed; double cost, probability; };

static struct input *inputs;
static int n_inputs;
static int horizon;
static long numerator, denominator;
static double ****memo; /* memo[n_a][k_a][n_b][k_b]: below 0 while not known */

static int fair(long n_a, long k_a, long n_b, long k_b) {
    return labs(k_a * n_b - k_b * n_a) * denominator <= numerator * n_a * n_b;
}

static double value(int n_a, int k_a, int n_b, int k_b);

static double after(int n_a, int k_a, int n_b, int k_b, int group, int accepted) {
    return group ? value(n_a, k_a, n_b + 1, k_b + accepted) : value(n_a + 1, k_a + accepted, n_b, k_b);
}

static double value(int n_a, int k_a, int n_b, int k_b) {
    if (n_a + n_b == horizon) return fair(n_a, k_a, n_b, k_b) ? 0.0 : INFINITY;
    double *known = &memo[n_a][k_a][n_b][k_b];
    if (*known >= 0.0) return *known;
    double total = 0.0;
    for (int i = 0; i < n_inputs; i++) {
        struct input x = inputs[i];
        double keep = after(n_a, k_a, n_b, k_b, x.group, x.proposed);
        double overrule = after(n_a, k_a, n_b, k_b, x.group, !x.proposed) + x.cost;
        total += x.probability * fmin(keep, overrule);
    }
    return *known = total;
}

static void *allocate(size_t count, size_t size) {
    void *block = malloc(count * size);
    if (!block) { fprintf(stderr, "out of memory\n"); exit(1); }
    return block;
}

int main(int argc, char **argv) {
    if (argc < 8 || argc % 4) {
        fprintf(stderr, "usage: baseline HORIZON NUMERATOR DENOMINATOR (GROUP PROPOSED COST P)...\n");
        return 2;
    }
    horizon = atoi(argv[1]);
    numerator = atol(argv[2]);
    denominator = atol(argv[3]);
    n_inputs = argc / 4 - 1;
    inputs = allocate(n_inputs, sizeof *inputs);
    for (int i = 0; i < n_inputs; i++) {
        char **field = argv + 4 * (i + 1);
        inputs[i] = (struct input){atoi(field[0]), atoi(field[1]), atof(field[2]), atof(field[3])};
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    memo = allocate(horizon, sizeof *memo);
    for (int n_a = 0; n_a < horizon; n_a++) {
        memo[n_a] = allocate(n_a + 1, sizeof **memo);
        for (int k_a = 0; k_a <= n_a; k_a++) {
            memo[n_a][k_a] = allocate(horizon - n_a, sizeof ***memo);
            for (int n_b = 0; n_b < horizon - n_a; n_b++) {
                memo[n_a][k_a][n_b] = allocate(n_b + 1, sizeof ****memo);
                for (int k_b = 0; k_b <= n_b; k_b++) memo[n_a][k_a][n_b][k_b] = -1.0;
            }
        }
    }
    double cost = value(0, 0, 0, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);
    printf("%.17g %.9f\n", cost, seconds);
    return 0;
}
